/* line_edit.h: lines from whoever sits at the terminal, with editing and a history where libedit is installed (it is
 * opened at run time) and plain otherwise, as from a file or a pipe. One at a time in a process: libedit has one
 * state. */
#ifndef CLI_LINE_EDIT_H
#define CLI_LINE_EDIT_H

#include <stdbool.h>
#include <stddef.h>

enum { LINE_EDIT_MOST_BYTES = 1 << 20, LINE_EDIT_HISTORY_LINES = 1000 };

typedef struct line_edit line_edit;

/* Begins. `history_path` is read if it is there and written at the end; NULL: no history is kept. NULL: no memory. */
line_edit *line_edit_open(const char *history_path);
/* Whether lines can be edited. */
bool line_edit_edits(const line_edit *editor);
/* The next line without its newline, or, at a terminal, all lines that were
 * pasted, with newlines between; free() it. NULL at the end of the input, after
 * a signal whose handler does not restart calls, for a line of more than
 * LINE_EDIT_MOST_BYTES bytes and without memory. The prompt is shown on a
 * terminal only. */
char *line_edit_read(line_edit *editor, const char *prompt);
/* Writes the history, which libedit lets only the user read, and ends. */
void line_edit_close(line_edit *editor);

/* Where a history belongs: $XDG_STATE_HOME/heddle/NAME, or ~/.local/state/heddle/NAME; makes the folders. False, and
 * out[0] is 0, where there is no such place. */
bool line_edit_history_path(const char *name, char *out, size_t out_bytes);

#endif
