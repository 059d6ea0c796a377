#include "ompi-component/hook/layouts.hpp"

#include <mutex>

#include "datatype/cache.hpp"
#include "ompi-component/hook/log.hpp"
#include "ompi-component/reader/reader.hpp"

namespace weft::ompi {
namespace {

// Never destroyed: datatypes that the program did not free outlive the static objects of a library.
datatype::LayoutCache& cache() {
  static auto* const instance = new datatype::LayoutCache;
  return *instance;
}

int keyval = MPI_KEYVAL_INVALID;

std::uintptr_t handle_of(const ompi_datatype_t* type) {
  return reinterpret_cast<std::uintptr_t>(type);
}

// Runs from the datatype's destructor: its address is not reused before we have forgotten it.
int forget(ompi_datatype_t* type, int /*keyval*/, void* /*value*/, void* /*extra*/) {
  cache().erase(handle_of(type));
  return MPI_SUCCESS;
}

int do_not_copy(ompi_datatype_t* /*from*/, int /*keyval*/, void* /*extra*/, void* /*value*/,
                void* /*copied_value*/, int* copied, ompi_datatype_t* /*to*/) {
  *copied = 0;
  return MPI_SUCCESS;
}

// An attribute of ours on the datatype has forget() called in time. It is not copied by
// MPI_Type_dup, and without our key nobody can see it.
bool watch(ompi_datatype_t* type) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  void* value = nullptr;
  int present = 0;
  // Setting it twice would run forget() on what has just been cached.
  if (type->d_keyhash != nullptr &&
      ompi_attr_get_c(type->d_keyhash, keyval, &value, &present) == OMPI_SUCCESS && present != 0)
    return true;
  return ompi_attr_set_c(TYPE_ATTR, type, &type->d_keyhash, keyval, type, false) == OMPI_SUCCESS;
}

}  // namespace

hca::LayoutPtr layout_of(ompi_datatype_t* type, std::size_t count) {
  bool compiled = false;
  hca::LayoutPtr layout =
      cache().get(handle_of(type), count, type->super.ub - type->super.lb, [&type, &compiled] {
        compiled = true;
        hca::LayoutPtr one = read_description(type->super);
        if (params.verbose >= 2) [[unlikely]]
          tell(2, "datatype {}: {}", name_or_unnamed(type->name), one->describe());
        return one;
      });
  // Predefined types (the pair types of MPI_MINLOC) are never freed.
  if (compiled && !ompi_datatype_is_predefined(type) && !watch(type)) [[unlikely]]
    cache().erase(handle_of(type));
  return layout;
}

bool open_layouts() {
  ompi_attribute_fn_ptr_union_t copy{};
  ompi_attribute_fn_ptr_union_t erase{};
  copy.attr_datatype_copy_fn = do_not_copy;
  erase.attr_datatype_delete_fn = forget;
  return ompi_attr_create_keyval(TYPE_ATTR, copy, erase, &keyval, nullptr, 0, nullptr) ==
         OMPI_SUCCESS;
}

void close_layouts() {
  // Datatypes that still carry the attribute keep the key alive.
  if (keyval != MPI_KEYVAL_INVALID) (void)ompi_attr_free_keyval(TYPE_ATTR, &keyval, false);
}

}  // namespace weft::ompi
