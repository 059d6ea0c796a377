#include "ompi-component/coll/component.h"
#include "ompi_config.h"

OBJ_CLASS_INSTANCE(weft_coll_module, mca_coll_base_module_t, weft_coll_construct,
                   weft_coll_destruct);
OBJ_CLASS_INSTANCE(weft_coll_request, ompi_request_t, NULL, NULL);

/* Found by name in mca_coll_weft.so. */
OMPI_MODULE_DECLSPEC extern const mca_coll_base_component_2_0_0_t mca_coll_weft_component;

const mca_coll_base_component_2_0_0_t mca_coll_weft_component = {
    .collm_version =
        {
            MCA_COLL_BASE_VERSION_2_0_0,
            .mca_component_name = "weft",
            MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
            .mca_close_component = weft_coll_close,
            .mca_register_component_params = weft_coll_register,
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = weft_coll_init_query,
    .collm_comm_query = weft_coll_comm_query,
};
