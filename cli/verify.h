/* verify.h: what the files of `heddle verify` share. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include "cli/cli.h"

/* The errors of the device's functions, for --errors (verify_errors.c); returns the exit code. */
int cli_verify_errors(cli_session *session, bool json);

#endif
