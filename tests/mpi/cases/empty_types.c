/* Types without elements, however they are made, in messages of any count and from no buffer at
 * all; and counts of zero of types that have elements. ranks: 2 */
#include "case.h"

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  enum { KINDS = 8 };
  MPI_Datatype kinds[KINDS], column;
  int none[2] = {0, 0}, at[2] = {5, -3};
  MPI_Aint far[2] = {1 << 20, -8};
  MPI_Type_contiguous(0, MPI_DOUBLE, &kinds[0]);
  MPI_Type_vector(0, 4, 9, MPI_INT, &kinds[1]);
  MPI_Type_create_hvector(6, 0, 100, MPI_INT, &kinds[2]);
  MPI_Type_indexed(2, none, at, MPI_SHORT, &kinds[3]);
  MPI_Type_create_hindexed(2, none, far, MPI_CHAR, &kinds[4]);
  MPI_Type_create_indexed_block(0, 3, NULL, MPI_FLOAT, &kinds[5]);
  MPI_Type_create_struct(0, NULL, NULL, NULL, &kinds[6]);
  MPI_Type_contiguous(12, kinds[3], &kinds[7]);
  MPI_Type_vector(10, 1, 3, MPI_INT, &column);
  MPI_Type_commit(&column);

  for (int k = 0; k < KINDS; k++) {
    int size = -1, elements = -1, count = -1, keep = 41;
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Type_commit(&kinds[k]);
    MPI_Type_size(kinds[k], &size);
    check(size == 0, "kind %d has size %d", k, size);
    MPI_Irecv(NULL, 2, kinds[k], partner(), k, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(NULL, 7, kinds[k], partner(), k, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Get_elements(&status, MPI_BYTE, &elements);
    MPI_Get_count(&status, MPI_BYTE, &count);
    check(elements == 0 && count == 0, "kind %d: %d elements, count %d", k, elements, count);
    /* An empty message into a strided receive, and a zero count of a type with elements. */
    int strided[40];
    for (int i = 0; i < 40; i++) strided[i] = keep;
    MPI_Sendrecv(NULL, 1, kinds[k], partner(), 50, strided, 1, column, partner(), 50,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, column, &count);
    check(count == 0, "kind %d into a column: count %d", k, count);
    MPI_Sendrecv(NULL, 0, column, partner(), 51, strided, 1, column, partner(), 51, MPI_COMM_WORLD,
                 &status);
    for (int i = 0; i < 40; i++) check(strided[i] == keep, "kind %d: cell %d written", k, i);
  }
  for (int k = 0; k < KINDS; k++) MPI_Type_free(&kinds[k]);
  MPI_Type_free(&column);
  return case_end();
}
