#include "ompi-component/hook/redirect_calls.hpp"

#include "ompi-component/hook/hook.hpp"

namespace weft::ompi {

mca_pml_base_module_t original;
Hook hook;

// Probes, cancellation and everything else stay the pml's own: they know no datatype.
void redirect() {
  original = mca_pml;
  mca_pml.pml_send = send;
  mca_pml.pml_isend = isend;
  mca_pml.pml_isend_init = isend_init;
  mca_pml.pml_recv = recv;
  mca_pml.pml_irecv = irecv;
  mca_pml.pml_irecv_init = irecv_init;
  mca_pml.pml_mrecv = mrecv;
  mca_pml.pml_imrecv = imrecv;
  mca_pml.pml_start = start;
}

void restore() {
  // Somebody who came after us wraps our functions: leave the chain alone.
  if (mca_pml.pml_send != send) return;
  mca_pml.pml_send = original.pml_send;
  mca_pml.pml_isend = original.pml_isend;
  mca_pml.pml_isend_init = original.pml_isend_init;
  mca_pml.pml_recv = original.pml_recv;
  mca_pml.pml_irecv = original.pml_irecv;
  mca_pml.pml_irecv_init = original.pml_irecv_init;
  mca_pml.pml_mrecv = original.pml_mrecv;
  mca_pml.pml_imrecv = original.pml_imrecv;
  mca_pml.pml_start = original.pml_start;
}

}  // namespace weft::ompi
