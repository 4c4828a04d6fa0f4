"""at_terminal.py COLUMNS SECONDS [AT:KEYS ...] -- COMMAND...: runs a command at a terminal of so many columns and writes all that
it prints there to standard output. KEYS (with Python's escapes) are typed AT seconds after the start, +AT seconds after the keys
before, or, where AT is a text, once it was printed: "> :hello\\r". Exits with the command's code, or with 124 when the SECONDS are
over; says on standard error how long the command went on after the last keys."""
import codecs, fcntl, os, pty, select, signal, struct, sys, termios, time

columns, limit = int(sys.argv[1]), float(sys.argv[2])
split = sys.argv.index("--")
keys = [item.rsplit(":", 1) for item in sys.argv[3:split]]
command = sys.argv[split + 1:]
child, terminal = pty.fork()
if child == 0:
    time.sleep(0.05)  # the size comes first
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
began = typed = time.time()
seen, after, timed_out = b"", 0, False


def is_due(at):
    try:
        return time.time() - (typed if at[0] == "+" else began) >= float(at)
    except ValueError:
        return at.encode() in seen[after:]


while True:
    if time.time() - began > limit:
        os.kill(child, signal.SIGKILL)
        timed_out = True
    ready, _, _ = select.select([terminal], [], [], 0.02)
    if ready:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    elif keys and is_due(keys[0][0]):
        after, typed = len(seen), time.time()
        os.write(terminal, codecs.escape_decode(keys.pop(0)[1].encode())[0])
sys.stdout.buffer.write(seen)
print("%.1f" % (time.time() - typed), file=sys.stderr)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(124 if timed_out else code if code >= 0 else 128 - code)
