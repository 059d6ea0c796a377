/* Less arrives than the receive has room for, and it ends anywhere in an element: exact numbers of
 * elements, no count where there is none, and nothing written after the end. ranks: 2 */
#include <stddef.h>

#include "case.h"

enum { PER_RECORD = 4, MOST = 30000 };
struct record {
  short a;
  double b;
  int c[2];
  char rest[10];
};

static MPI_Datatype record_type(void) {
  int lengths[] = {1, 1, 2};
  MPI_Aint at[] = {offsetof(struct record, a), offsetof(struct record, b),
                   offsetof(struct record, c)};
  MPI_Datatype kinds[] = {MPI_SHORT, MPI_DOUBLE, MPI_INT}, plain, type;
  MPI_Type_create_struct(3, lengths, at, kinds, &plain);
  MPI_Type_create_resized(plain, 0, sizeof(struct record), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&plain);
  return type;
}

/* The first `elements` elements of an array of records, as a type. */
static MPI_Datatype first(MPI_Datatype record, int elements) {
  int whole = elements / PER_RECORD, left = elements % PER_RECORD;
  MPI_Aint base = (MPI_Aint)whole * sizeof(struct record);
  int lengths[] = {whole, left > 0, left > 1, left > 2};
  MPI_Aint at[] = {0, base + offsetof(struct record, a), base + offsetof(struct record, b),
                   base + offsetof(struct record, c)};
  MPI_Datatype kinds[] = {record, MPI_SHORT, MPI_DOUBLE, MPI_INT}, type;
  MPI_Type_create_struct(4, lengths, at, kinds, &type);
  MPI_Type_commit(&type);
  return type;
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  MPI_Datatype record = record_type();
  struct record *a = need(MOST * sizeof *a), *b = need(MOST * sizeof *b);
  const int wholes[] = {0, 1, 33, 900, 25000};
  for (int k = 0; k < 5; k++) {
    for (int left = 0; left < PER_RECORD; left++) {
      int sent = wholes[k] * PER_RECORD + left, count, elements;
      for (int i = 0; i < MOST; i++) {
        a[i] = (struct record){(short)i, i + 0.5, {2 * i, 2 * i + 1}, "x"};
        b[i] = (struct record){-1, -1, {-1, -1}, "yy"};
      }
      MPI_Datatype part = first(record, sent);
      MPI_Status status;
      MPI_Sendrecv(a, 1, part, partner(), 2, b, MOST, record, partner(), 2, MPI_COMM_WORLD,
                   &status);
      MPI_Type_free(&part);
      MPI_Get_count(&status, record, &count);
      MPI_Get_elements(&status, record, &elements);
      check(count == (left ? MPI_UNDEFINED : wholes[k]), "%d elements: count %d", sent, count);
      check(elements == sent, "%d elements counted as %d", sent, elements);
      for (int i = 0; i < MOST; i++) {
        int there = sent - i * PER_RECORD;
        int right = b[i].a == (there > 0 ? (short)i : -1) && b[i].b == (there > 1 ? i + 0.5 : -1) &&
                    b[i].c[0] == (there > 2 ? 2 * i : -1) &&
                    b[i].c[1] == (there > 3 ? 2 * i + 1 : -1) && strcmp(b[i].rest, "yy") == 0;
        if (!check(right, "%d elements: record %d is wrong", sent, i)) break;
      }
    }
  }
  MPI_Type_free(&record);
  free(a);
  free(b);
  return case_end();
}
