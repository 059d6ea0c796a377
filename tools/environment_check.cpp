#include "tools/environment_check.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <utility>

#include "hca/emu/device_file.hpp"
#include "tools/peer_read.hpp"

namespace weft::tools {
namespace {

using Level = Finding::Level;

constexpr const char* known_ucx = "1.13.";
constexpr const char* known_open_mpi = "4.1.";

Finding good(std::string text) {
  return {Level::good, std::move(text)};
}
Finding note(std::string text, std::string advice) {
  return {Level::note, std::move(text), std::move(advice)};
}
Finding problem(std::string text, std::string advice) {
  return {Level::problem, std::move(text), std::move(advice)};
}

std::string quoted(const Setting& setting) {
  return fmt::format("{}='{}'", setting.source, setting.value);
}

Finding check_ucx_version() {
  void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return problem("UCX is not there: no libucp.so.0",
                   "install libucx0, or put UCX's folder on LD_LIBRARY_PATH");
  }
  const auto get = reinterpret_cast<const char* (*)()>(dlsym(library, "ucp_get_version_string"));
  const std::string version = get == nullptr ? "of unknown version" : get();
  if (!version.starts_with(known_ucx)) {
    return problem(fmt::format("UCX is {}; weft knows {}x and stays out", version, known_ucx),
                   "use Debian 12's UCX");
  }
  return good("UCX " + version);
}

/// "Open MPI v4.1.4, package: ..." -> "4.1.4"; empty for another MPI.
std::string open_mpi_version(const std::string& library_version) {
  constexpr std::string_view name = "Open MPI v";
  if (!library_version.starts_with(name)) return {};
  return library_version.substr(name.size(), library_version.find(',') - name.size());
}

Finding check_open_mpi_version() {
  void* library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return problem("Open MPI is not there: no libmpi.so.40",
                   "install libopenmpi3, or put Open MPI's folder on LD_LIBRARY_PATH");
  }
  const auto get =
      reinterpret_cast<int (*)(char*, int*)>(dlsym(library, "MPI_Get_library_version"));
  char text[1024] = "";
  int length = 0;
  if (get != nullptr) get(text, &length);
  const std::string version = open_mpi_version(text);
  if (!version.starts_with(known_open_mpi)) {
    return problem(fmt::format("Open MPI is {}; weft knows {}x and stays out",
                               version.empty() ? "of unknown version" : version, known_open_mpi),
                   "use Debian 12's Open MPI");
  }
  return good("Open MPI " + version);
}

bool readable(const std::string& file) {
  return access(file.c_str(), R_OK) == 0;
}

/// Open MPI's own component folder: what plain mpirun searches.
std::string system_component_folder() {
  void* library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_LOCAL);
  Dl_info info{};
  if (library == nullptr || dladdr(dlsym(library, "MPI_Init"), &info) == 0) return {};
  std::error_code error;
  const auto folder = std::filesystem::canonical(info.dli_fname, error).parent_path();
  for (const char* name : {"openmpi3", "openmpi"}) {
    if (readable(folder / name / "mca_hook_weft.so")) return folder / name;
  }
  return {};
}

Finding check_component_path(const Settings& settings, const Installation& installation) {
  const auto path = settings.mca("mca_base_component_path");
  if (path && path_contains(path->value, installation.component_folder)) {
    return good("Open MPI finds the component: " + installation.component);
  }
  const bool defaults = !path || path_contains(path->value, "SYS_DEFAULT") ||
                        path_contains(path->value, "SYSTEM_DEFAULT");
  if (const auto folder = system_component_folder(); defaults && !folder.empty()) {
    return good("Open MPI finds the component in its own folder: " + folder);
  }
  if (const auto home = settings.variable("HOME"); !path && home) {
    const auto file = home->value + "/.openmpi/components/mca_hook_weft.so";
    if (readable(file)) return good("Open MPI finds the component: " + file);
  }
  return problem("plain mpirun does not find the component",
                 "start programs with weftrun (and this check: weftrun weft-info), or install "
                 "into Open MPI's folder with configure --with-ompi-component-dir");
}

Finding check_transport_loads(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = library == nullptr ? dlerror() : nullptr;
  if (library != nullptr && dlsym(library, "weft_transport_api") == nullptr) error = dlerror();
  if (error != nullptr) {
    return problem(fmt::format("the transport does not load: {}", error),
                   "build and install again");
  }
  return good("the transport loads: " + file);
}

Finding check_shared_memory() {
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) != 0 || access("/dev/shm", W_OK | X_OK) != 0) {
    return problem("/dev/shm cannot be written", "mount a tmpfs there, writable for you");
  }
  const std::uint64_t free_mib = std::uint64_t{space.f_bavail} * space.f_frsize >> 20;
  if (free_mib < 64) {
    return note(fmt::format("/dev/shm has only {} MiB left", free_mib),
                "weft wants few MiB a rank there, Open MPI more: remove what is left over, or make "
                "it larger (containers: --shm-size=1g)");
  }
  return good(fmt::format("/dev/shm is writable, {} MiB left", free_mib));
}

/// Opens the device as ranks will, and gives it back.
Finding check_device(const std::string& device) {
  try {
    const hca::emu::DeviceFile opened(device);
    return good("the device opens: " + hca::emu::DeviceFile::path_of(device));
  } catch (const std::exception& error) {
    return problem(fmt::format("the device does not open: {}", error.what()),
                   "correct or unset what it names, or take another device: UCX_WEFT_DEVICE=NAME");
  }
}

Finding check_peer_read() {
  switch (try_peer_read()) {
    case PeerRead::allowed:
      return good("processes may read each other's memory (process_vm_readv)");
    case PeerRead::forbidden:
      return note("processes may not read each other's memory (process_vm_readv)",
                  "weft does without, UCX's cma does not; to allow it: sysctl "
                  "kernel.yama.ptrace_scope=0, or the capability SYS_PTRACE for a container");
    case PeerRead::unknown:
      break;
  }
  return note("could not try process_vm_readv", "no process could be started: see ulimit -u");
}

Finding check_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  if (count == 1) {
    return note("one processor",
                "ranks take turns: gather and scatter cannot overlap, and waiting costs time "
                "slices (--mca mpi_yield_when_idle 1)");
  }
  return good(fmt::format("{} processors", count));
}

}  // namespace

Findings check_libraries() {
  return {check_ucx_version(), check_open_mpi_version()};
}

Findings check_installation(const Settings& settings, const Installation& installation) {
  Findings findings;
  bool complete = true;
  for (const auto& file : {installation.transport, installation.component}) {
    if (readable(file)) continue;
    complete = false;
    findings.push_back(problem(file + " is missing", "make install, or scripts/quickstart"));
  }
  if (complete) {
    findings.push_back(check_transport_loads(installation.transport));
    findings.push_back(check_component_path(settings, installation));
  }
  return findings;
}

Findings check_open_mpi_settings(const Settings& settings) {
  Findings findings;
  if (const auto enable = settings.mca("hook_weft_enable");
      enable && (enable->value == "0" || enable->value == "false" || enable->value == "no")) {
    findings.push_back(problem(quoted(*enable) + " keeps weft out", "unset it"));
  }
  if (const auto hook = settings.mca("hook"); hook && !component_list_allows(hook->value, "weft")) {
    findings.push_back(problem(quoted(*hook) + " keeps the hook out", "unset it, or add weft"));
  }
  if (const auto off = settings.mca("mca_base_component_disable_dlopen");
      off && off->value != "0" && off->value != "false") {
    findings.push_back(problem(quoted(*off) + " keeps every component out", "unset it"));
  }
  if (const auto pml = settings.mca("pml"); pml && !component_list_allows(pml->value, "ucx")) {
    findings.push_back(problem(quoted(*pml) + " lets another PML than ucx carry the messages",
                               "unset it (weft asks for ucx itself)"));
  }
  for (const char* name : {"opal_common_ucx_tls", "opal_common_ucx_devices"}) {
    const auto list = settings.mca(name);
    if (!list || list->value == "any") continue;
    findings.push_back(note(quoted(*list) + " may keep Open MPI from using UCX on this node",
                            "unset it, or set it to any"));
  }
  if (const auto least = settings.mca("hook_weft_min_size"); least && least->value != "0") {
    findings.push_back(
        note(quoted(*least) + ": smaller messages are not offloaded", "unset it to offload more"));
  }
  if (findings.empty()) findings.push_back(good("no setting of Open MPI's is in the way"));
  return findings;
}

Findings check_ucx_settings(const Settings& settings) {
  Findings findings;
  if (const auto list = settings.variable("UCX_TLS")) {
    for (const char* transport : {"weft", "weft_cp"}) {
      if (ucx_list_allows(list->value, transport)) continue;
      findings.push_back(problem(fmt::format("{} leaves {} out", quoted(*list), transport),
                                 "unset it, or add weft and weft_cp"));
    }
  }
  // Devices are chosen by kind: the wire is shared memory, windows are an accelerator's memory to
  // UCX.
  for (const auto& [variable, what] :
       {std::pair{"UCX_SHM_DEVICES", "the wire"}, std::pair{"UCX_ACC_DEVICES", "the windows"}}) {
    const auto list = settings.variable(variable);
    if (!list || ucx_list_allows(list->value, "all") ||
        list->value.find("weft") != std::string::npos)
      continue;
    findings.push_back(problem(fmt::format("{} leaves {} out", quoted(*list), what),
                               "unset it, or add the device ucx_info -d names under weftrun"));
  }
  if (findings.empty()) findings.push_back(good("no setting of UCX's is in the way"));
  return findings;
}

Findings check_machine(const std::string& device) {
  return {check_shared_memory(), check_device(device), check_peer_read(), check_processors()};
}

Findings check_environment(const Settings& settings, const Installation& installation,
                           const std::string& device) {
  Findings all;
  for (const auto& part :
       {check_libraries(), check_installation(settings, installation),
        check_open_mpi_settings(settings), check_ucx_settings(settings), check_machine(device)}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace weft::tools
