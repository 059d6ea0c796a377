/* One message of objects on the stack, on the heap and static, by their addresses and from
 * MPI_BOTTOM. ranks: 2 */
#include "case.h"

enum { MOST = 60000 };
static float table[2][MOST];

static MPI_Datatype everything(void* stack, void* heap, void* fixed, int n) {
  MPI_Datatype every_second, all;
  MPI_Aint at[3];
  MPI_Type_vector(n, 1, 2, MPI_INT, &every_second);
  MPI_Get_address(stack, &at[0]);
  MPI_Get_address(heap, &at[1]);
  MPI_Get_address(fixed, &at[2]);
  int lengths[] = {19, 1, n};
  MPI_Datatype kinds[] = {MPI_CHAR, every_second, MPI_FLOAT};
  MPI_Type_create_struct(3, lengths, at, kinds, &all);
  MPI_Type_commit(&all);
  MPI_Type_free(&every_second);
  return all;
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int sizes[] = {1, 75, 3000, MOST};
  for (int k = 0; k < 4; k++) {
    int n = sizes[k];
    char mine[19], theirs[19];
    int *from = need(2 * n * sizeof(int)), *to = need(2 * n * sizeof(int));
    MPI_Datatype out = everything(mine, from, table[0], n),
                 in = everything(theirs, to, table[1], n);
    for (int i = 0; i < 19; i++) {
      mine[i] = (char)('a' + i + case_rank);
      theirs[i] = 0;
    }
    for (int i = 0; i < 2 * n; i++) {
      from[i] = 5 * i + case_rank;
      to[i] = -1;
    }
    for (int i = 0; i < n; i++) {
      table[0][i] = (float)(i - case_rank);
      table[1][i] = -1;
    }
    MPI_Request request;
    MPI_Irecv(MPI_BOTTOM, 1, in, partner(), k, MPI_COMM_WORLD, &request);
    MPI_Send(MPI_BOTTOM, 1, out, partner(), k, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 19; i++) check(theirs[i] == 'a' + i + partner(), "stack byte %d", i);
    for (int i = 0; i < 2 * n; i++) {
      check(to[i] == (i % 2 ? -1 : 5 * i + partner()), "heap element %d of %d: %d", i, n, to[i]);
    }
    for (int i = 0; i < n; i++)
      check(table[1][i] == (float)(i - partner()), "static element %d", i);
    MPI_Type_free(&out);
    MPI_Type_free(&in);
    free(from);
    free(to);
  }
  return case_end();
}
