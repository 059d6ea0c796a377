/* The component as Open MPI's MCA sees it: C, because MCA's macros are C. */
#ifndef WEFT_HOOK_COMPONENT_H
#define WEFT_HOOK_COMPONENT_H

#ifdef __cplusplus
extern "C" {
#endif

int weft_hook_register(void);
int weft_hook_open(void);
void weft_hook_init_bottom(int argc, char** argv, int requested, int* provided);
void weft_hook_init_error(int argc, char** argv, int requested, int* provided);
void weft_hook_finalize_top(void);

#ifdef __cplusplus
}
#endif
#endif
