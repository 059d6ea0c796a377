// Which UCX is loaded, and whether weft knows its private interface.
#pragma once

#include <string>

namespace weft::ucx {

/// The UCX this code was written for: "1.13".
std::string known_version();

/// The UCX in this process, as libucp states it ("1.13.1"); empty when libucp cannot be found.
/// libuct and libucs do not state theirs, so libucp is looked for beside the libuct in use.
std::string loaded_version();

/// True when the loaded UCX is one that weft knows. Otherwise `why` is one line that names both
/// versions.
bool version_is_known(std::string* why = nullptr);

/// For those who must not go on with another version: as version_is_known, and the line goes to
/// stderr, once in a process.
bool require_known_version();

}  // namespace weft::ucx
