/* An ordinary halo exchange: plain MPI, and nothing in it knows of weft.
 *
 *   mpirun -np 4 halo [STEPS]
 *
 * Heat spreads over a plane and through a cube, both periodic and cut into boxes by
 * MPI_Cart_create. Before each step every rank gets the cells next to its box from its neighbours:
 *   plane: rows and columns (MPI_Type_vector) by MPI_Sendrecv,
 *   cube:  six faces (MPI_Type_create_subarray) by MPI_Irecv, MPI_Isend and MPI_Waitall.
 * At the end each rank computes the whole field alone, without MPI, and compares its box with it,
 * bit by bit. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLANE = 1024, CUBE = 96 };

static int rank, ranks;

static double* zeros(size_t n) {
  double* memory = calloc(n, sizeof *memory);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

/* Cells of a side of length `side` before part `index` of `parts`. */
static int first_cell(int side, int parts, int index) {
  return (int)((long)side * index / parts);
}

static double start_value(int x, int y, int z) {
  return (x * 7 + y * 13 + z * 29) % 101;
}

/* --- the plane ------------------------------------------------------------------------------- */

/* One step of a box of nx rows and ny columns that has a border of one cell. */
static void step_plane(double* to, const double* from, int nx, int ny) {
  int row = ny + 2;
  for (int x = 1; x <= nx; x++) {
    for (int y = 1; y <= ny; y++) {
      const double* c = from + x * row + y;
      to[x * row + y] = 0.25 * ((c[-1] + c[1]) + (c[-row] + c[row]));
    }
  }
}

static void exchange_plane(double* u, int nx, int ny, MPI_Datatype column, MPI_Comm cart) {
  int row = ny + 2, up, down, left, right;
  MPI_Cart_shift(cart, 0, 1, &up, &down);
  MPI_Cart_shift(cart, 1, 1, &left, &right);
  MPI_Sendrecv(u + row + 1, ny, MPI_DOUBLE, up, 0, u + (nx + 1) * row + 1, ny, MPI_DOUBLE, down, 0,
               cart, MPI_STATUS_IGNORE);
  MPI_Sendrecv(u + nx * row + 1, ny, MPI_DOUBLE, down, 1, u + 1, ny, MPI_DOUBLE, up, 1, cart,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(u + row + 1, 1, column, left, 2, u + row + ny + 1, 1, column, right, 2, cart,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(u + row + ny, 1, column, right, 3, u + row, 1, column, left, 3, cart,
               MPI_STATUS_IGNORE);
}

/* The same for a box that is the whole plane. */
static void wrap_plane(double* u, int nx, int ny) {
  int row = ny + 2;
  for (int y = 1; y <= ny; y++) {
    u[y] = u[nx * row + y];
    u[(nx + 1) * row + y] = u[row + y];
  }
  for (int x = 1; x <= nx; x++) {
    u[x * row] = u[x * row + ny];
    u[x * row + ny + 1] = u[x * row + 1];
  }
}

/* Runs the box that starts at x0, y0; without a communicator it is the whole plane. */
static double* run_plane(int x0, int y0, int nx, int ny, MPI_Comm cart, int steps) {
  int row = ny + 2;
  double *u = zeros((size_t)(nx + 2) * row), *next = zeros((size_t)(nx + 2) * row);
  MPI_Datatype column;
  MPI_Type_vector(nx, 1, row, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int x = 0; x < nx; x++) {
    for (int y = 0; y < ny; y++) u[(x + 1) * row + y + 1] = start_value(x0 + x, y0 + y, 0);
  }
  for (int s = 0; s < steps; s++) {
    if (cart == MPI_COMM_NULL) {
      wrap_plane(u, nx, ny);
    } else {
      exchange_plane(u, nx, ny, column, cart);
    }
    step_plane(next, u, nx, ny);
    double* swap = u;
    u = next;
    next = swap;
  }
  MPI_Type_free(&column);
  free(next);
  return u;
}

static long compare_plane(int steps) {
  int dims[2] = {0, 0}, periods[2] = {1, 1}, at[2];
  MPI_Comm cart;
  MPI_Dims_create(ranks, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  MPI_Cart_coords(cart, rank, 2, at);
  int x0 = first_cell(PLANE, dims[0], at[0]), nx = first_cell(PLANE, dims[0], at[0] + 1) - x0;
  int y0 = first_cell(PLANE, dims[1], at[1]), ny = first_cell(PLANE, dims[1], at[1] + 1) - y0;
  double* mine = run_plane(x0, y0, nx, ny, cart, steps);
  double* whole = run_plane(0, 0, PLANE, PLANE, MPI_COMM_NULL, steps);
  long different = 0;
  for (int x = 1; x <= nx; x++) {
    for (int y = 1; y <= ny; y++) {
      different += mine[x * (ny + 2) + y] != whole[(x0 + x) * (PLANE + 2) + y0 + y];
    }
  }
  if (rank == 0) {
    printf("plane %d x %d on %d x %d ranks, %d steps: columns of %d doubles, one in %d\n", PLANE,
           PLANE, dims[0], dims[1], steps, nx, ny + 2);
  }
  MPI_Comm_free(&cart);
  free(mine);
  free(whole);
  return different;
}

/* --- the cube -------------------------------------------------------------------------------- */

static size_t cell(const int* n, int x, int y, int z) {
  return ((size_t)x * (n[1] + 2) + y) * (n[2] + 2) + z;
}

static void step_cube(double* to, const double* from, const int* n) {
  for (int x = 1; x <= n[0]; x++) {
    for (int y = 1; y <= n[1]; y++) {
      for (int z = 1; z <= n[2]; z++) {
        to[cell(n, x, y, z)] = ((from[cell(n, x - 1, y, z)] + from[cell(n, x + 1, y, z)]) +
                                (from[cell(n, x, y - 1, z)] + from[cell(n, x, y + 1, z)]) +
                                (from[cell(n, x, y, z - 1)] + from[cell(n, x, y, z + 1)])) /
                               6;
      }
    }
  }
}

/* The layer at `position` in dimension d, without the border in the others. */
static MPI_Datatype face(const int* n, int d, int position) {
  int sizes[3], part[3], start[3];
  MPI_Datatype type;
  for (int i = 0; i < 3; i++) {
    sizes[i] = n[i] + 2;
    part[i] = i == d ? 1 : n[i];
    start[i] = i == d ? position : 1;
  }
  MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

struct faces {
  MPI_Datatype send[6], recv[6];
};

static void exchange_cube(double* u, const struct faces* f, MPI_Comm cart) {
  MPI_Request requests[12];
  for (int d = 0; d < 3; d++) {
    int low, high;
    MPI_Cart_shift(cart, d, 1, &low, &high);
    MPI_Irecv(u, 1, f->recv[2 * d], low, 2 * d, cart, &requests[4 * d]);
    MPI_Irecv(u, 1, f->recv[2 * d + 1], high, 2 * d + 1, cart, &requests[4 * d + 1]);
    MPI_Isend(u, 1, f->send[2 * d + 1], high, 2 * d, cart, &requests[4 * d + 2]);
    MPI_Isend(u, 1, f->send[2 * d], low, 2 * d + 1, cart, &requests[4 * d + 3]);
  }
  MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
}

static void wrap_cube(double* u, const int* n) {
  for (int d = 0; d < 3; d++) {
    int e = (d + 1) % 3, f = (d + 2) % 3, at[3], from[3];
    for (int i = 1; i <= n[e]; i++) {
      for (int j = 1; j <= n[f]; j++) {
        at[e] = from[e] = i;
        at[f] = from[f] = j;
        at[d] = 0;
        from[d] = n[d];
        u[cell(n, at[0], at[1], at[2])] = u[cell(n, from[0], from[1], from[2])];
        at[d] = n[d] + 1;
        from[d] = 1;
        u[cell(n, at[0], at[1], at[2])] = u[cell(n, from[0], from[1], from[2])];
      }
    }
  }
}

static double* run_cube(const int* origin, const int* n, MPI_Comm cart, int steps) {
  size_t cells = cell(n, n[0] + 1, n[1] + 1, n[2] + 1) + 1;
  double *u = zeros(cells), *next = zeros(cells);
  struct faces f;
  for (int d = 0; d < 3; d++) {
    f.send[2 * d] = face(n, d, 1);
    f.send[2 * d + 1] = face(n, d, n[d]);
    f.recv[2 * d] = face(n, d, 0);
    f.recv[2 * d + 1] = face(n, d, n[d] + 1);
  }
  for (int x = 0; x < n[0]; x++) {
    for (int y = 0; y < n[1]; y++) {
      for (int z = 0; z < n[2]; z++) {
        u[cell(n, x + 1, y + 1, z + 1)] = start_value(origin[0] + x, origin[1] + y, origin[2] + z);
      }
    }
  }
  for (int s = 0; s < steps; s++) {
    if (cart == MPI_COMM_NULL) {
      wrap_cube(u, n);
    } else {
      exchange_cube(u, &f, cart);
    }
    step_cube(next, u, n);
    double* swap = u;
    u = next;
    next = swap;
  }
  for (int i = 0; i < 6; i++) {
    MPI_Type_free(&f.send[i]);
    MPI_Type_free(&f.recv[i]);
  }
  free(next);
  return u;
}

static long compare_cube(int steps) {
  int dims[3] = {0, 0, 0}, periods[3] = {1, 1, 1}, at[3], origin[3], n[3];
  MPI_Comm cart;
  MPI_Dims_create(ranks, 3, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cart);
  MPI_Cart_coords(cart, rank, 3, at);
  for (int d = 0; d < 3; d++) {
    origin[d] = first_cell(CUBE, dims[d], at[d]);
    n[d] = first_cell(CUBE, dims[d], at[d] + 1) - origin[d];
  }
  double* mine = run_cube(origin, n, cart, steps);

  int zero[3] = {0, 0, 0}, all[3] = {CUBE, CUBE, CUBE};
  double* whole = run_cube(zero, all, MPI_COMM_NULL, steps);
  long different = 0;
  for (int x = 1; x <= n[0]; x++) {
    for (int y = 1; y <= n[1]; y++) {
      for (int z = 1; z <= n[2]; z++) {
        different +=
            mine[cell(n, x, y, z)] != whole[cell(all, origin[0] + x, origin[1] + y, origin[2] + z)];
      }
    }
  }
  if (rank == 0) {
    printf("cube %d^3 on %d x %d x %d ranks, %d steps: faces of %d x %d, %d x %d and %d x %d\n",
           CUBE, dims[0], dims[1], dims[2], steps, n[1], n[2], n[0], n[2], n[0], n[1]);
  }
  MPI_Comm_free(&cart);
  free(mine);
  free(whole);
  return different;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int steps = argc > 1 ? atoi(argv[1]) : 20;
  long different = compare_plane(steps) + compare_cube(steps), all;
  MPI_Reduce(&different, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) puts("halo: OK, equal to the result of one process alone");
  if (rank == 0 && all != 0) printf("halo: WRONG, %ld cells differ\n", all);
  MPI_Bcast(&all, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
