#include "ompi-component/reader/reader.hpp"

#include <span>

#include "datatype/loop_builder.hpp"

namespace weft::ompi {
namespace {

// Commit leaves an optimised description beside the original one; a predefined pair type or a type
// that Open MPI uses uncommitted may lack it. Open MPI packs by the optimised one as well.
std::span<const dt_elem_desc_t> description_of(const opal_datatype_t& type) {
  const dt_type_desc_t& chosen =
      (type.opt_desc.desc != nullptr && type.opt_desc.used != 0) ? type.opt_desc : type.desc;
  return {chosen.desc, chosen.used};
}

}  // namespace

hca::LayoutPtr read_description(const opal_datatype_t& type) {
  datatype::LoopBuilder builder;
  for (const dt_elem_desc_t& entry : description_of(type)) {
    switch (entry.elem.common.type) {
      case OPAL_DATATYPE_LOOP:
        builder.begin_loop(entry.loop.loops, entry.loop.extent);
        break;
      case OPAL_DATATYPE_END_LOOP:
        builder.end_loop();
        break;
      default: {
        const ddt_elem_desc_t& blocks = entry.elem;
        const std::size_t primitive = opal_datatype_basicDatatypes[blocks.common.type]->size;
        builder.element(blocks.disp, blocks.count, blocks.blocklen * primitive, blocks.extent);
      }
    }
  }
  return builder.finish();
}

}  // namespace weft::ompi
