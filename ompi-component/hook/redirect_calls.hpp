// The functions that take the place of the pml's. Each hands a plain datatype on at once.
#pragma once

#include "ompi-component/ompi.hpp"

namespace weft::ompi {

int send(const void* buffer, size_t count, ompi_datatype_t* type, int destination, int tag,
         mca_pml_base_send_mode_t mode, ompi_communicator_t* comm);
int isend(const void* buffer, size_t count, ompi_datatype_t* type, int destination, int tag,
          mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, ompi_request_t** request);
int isend_init(const void* buffer, size_t count, ompi_datatype_t* type, int destination, int tag,
               mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, ompi_request_t** request);

int recv(void* buffer, size_t count, ompi_datatype_t* type, int source, int tag,
         ompi_communicator_t* comm, ompi_status_public_t* status);
int irecv(void* buffer, size_t count, ompi_datatype_t* type, int source, int tag,
          ompi_communicator_t* comm, ompi_request_t** request);
int irecv_init(void* buffer, size_t count, ompi_datatype_t* type, int source, int tag,
               ompi_communicator_t* comm, ompi_request_t** request);
int mrecv(void* buffer, size_t count, ompi_datatype_t* type, ompi_message_t** message,
          ompi_status_public_t* status);
int imrecv(void* buffer, size_t count, ompi_datatype_t* type, ompi_message_t** message,
           ompi_request_t** request);

int start(size_t count, ompi_request_t** requests);

}  // namespace weft::ompi
