// The functions that a loaded library calls in other libraries, and their replacement.
#pragma once

namespace weft::ompi {

/// Where the library that holds `inside` keeps the address it calls for the function `name` of
/// another library: an entry of its global offset table. Null when it does not call it, or where
/// the table's form is not known.
void** import_of(const void* inside, const char* name) noexcept;

/// Puts `function` there; false when the page cannot be written. Threads may call meanwhile: they
/// get the one or the other.
bool set_import(void** import, void* function) noexcept;

}  // namespace weft::ompi
