/* task.h: private to the plan room: what fuse.c hands to step.c. A task is one operation with its views resolved and an
 * element-wise chain behind it (or, for HDI_OP_COPY, nothing but the chain). */
#ifndef HDI_PLAN_TASK_H
#define HDI_PLAN_TASK_H

#include "plan/schedule.h"

#define HDI_TASK_INPUTS 15
#define HDI_TASK_VALUES (HDI_CHAIN_STEPS + 3) /* a norm, two products and a chain */

typedef struct hdi_task {
    hdi_op           op;
    const hdi_attrs *attrs;
    hdi_tensor       inputs[HDI_TASK_INPUTS];
    uint32_t         input_count;
    hdi_chain        chain; /* step_count 0: none */
    hdi_norm         a_norm; /* of a product: what it does to A on the way */
    bool             a_rounded; /* of a product: A is f32 in the program and was stored as f16 */
    bool             a_coded, out_coded; /* of a product: f32 in the program, stored in 8 bits */
    bool             pair;  /* of a product: inputs[2] (with experts: [3]) is a second B, chain source 1 its product */
    hdi_tensor       out;
    hd_value         values[HDI_TASK_VALUES]; /* the nodes it computes, in order */
    uint32_t         value_count;
    const hdi_attrs *norm, *turn; /* of a request for HDI_OP_ROPE or HDI_OP_ATTENTION */
} hdi_task;

/* Turns a task into steps of the plan through the kernels room (step.c). */
hd_status hdi_task_emit(hdi_schedule *schedule, const hd_program *program, const hdi_task *task, hd_error *error);
/* A step that fills `tensor` (dense) with a value of its type, given as 32 bits of the computing type. */
hd_status hdi_task_fill(hdi_schedule *schedule, const hd_program *program, hd_value value, const hdi_tensor *tensor,
                        float fill, hd_error *error);
/* Leaves out the last step where one shortly before made the same. The storage that holds it, or HDI_NO_INDEX. */
uint32_t hdi_steps_leave_repeated(hdi_schedule *schedule);
/* May the task be one kernel: its operation, the norm and the pair, and the chain behind? Asks the kernels room. */
bool hdi_task_fits(const hdi_schedule *schedule, const hdi_task *task);
/* Is there a kernel for the task, an attention that turns its heads? */
bool hdi_task_turns(const hdi_schedule *schedule, const hdi_task *task);
/* Would the task, a product, make f16 of its A in a step of its own? */
bool hdi_task_rounds(const hdi_schedule *schedule, const hdi_task *task);
/* Can the task, a product, read or store codes as it says, by the kernel that makes it anyway? */
bool hdi_task_takes_codes(const hdi_schedule *schedule, const hdi_task *task);
#endif
