#include "ompi-component/hook/component.h"

#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "ompi_config.h"

/* Found by name in mca_hook_weft.so. */
OMPI_MODULE_DECLSPEC extern const ompi_hook_base_component_t mca_hook_weft_component;

const ompi_hook_base_component_t mca_hook_weft_component = {
    .hookm_version =
        {
            OMPI_HOOK_BASE_VERSION_1_0_0,
            .mca_component_name = "weft",
            MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
            .mca_open_component = weft_hook_open,
            .mca_register_component_params = weft_hook_register,
        },
    .hookm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .hookm_mpi_init_bottom = weft_hook_init_bottom,
    .hookm_mpi_init_error = weft_hook_init_error,
    .hookm_mpi_finalize_top = weft_hook_finalize_top,
};
