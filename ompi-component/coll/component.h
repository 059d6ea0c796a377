/* The component and its modules as Open MPI's MCA sees them: C, because MCA's macros are C. */
#ifndef WEFT_COLL_COMPONENT_H
#define WEFT_COLL_COMPONENT_H

#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"

/* C names. NOLINTBEGIN(readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

/* A module: one communicator's. The rest of it is C++. */
typedef struct weft_coll_module {
  mca_coll_base_module_t super;
  void* node;   /* where all processes are on this node */
  void* levels; /* where they are on several */
} weft_coll_module;
OBJ_CLASS_DECLARATION(weft_coll_module);

/* A non-blocking barrier under way. */
typedef struct weft_coll_request {
  ompi_request_t super;
  weft_coll_module* module;
  uint64_t barrier;
  unsigned next;
} weft_coll_request;
OBJ_CLASS_DECLARATION(weft_coll_request);

int weft_coll_register(void);
int weft_coll_close(void);
int weft_coll_init_query(bool progress_threads, bool mpi_threads);
mca_coll_base_module_t* weft_coll_comm_query(struct ompi_communicator_t* comm, int* priority);
void weft_coll_construct(weft_coll_module* module);
void weft_coll_destruct(weft_coll_module* module);

extern const mca_coll_base_component_2_0_0_t mca_coll_weft_component;

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */
#endif
