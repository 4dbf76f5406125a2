# Reports each command that ended to `talon watch`: the command line, its exit code, directory and duration.
# Commands that begin with a space are not reported. Nothing waits, and without a watcher nothing happens.
if status is-interactive; and not set -q __talon_watch
    set -g __talon_watch @PROGRAM@
    function __talon_postexec --on-event fish_postexec
        set -l code $status
        set -l ms $CMD_DURATION
        set -l text "$argv[1]"
        test -n "$text"; or return
        string match -qr '^\s' -- "$text"; and return
        printf '%s' "$text" | $__talon_watch report --exit $code --directory "$PWD" --duration-ms "$ms" >/dev/null 2>&1 &
        disown $last_pid 2>/dev/null
    end
    # Shows a ghost that waits, once, where the watcher's `show_ghosts` asks for it.
    function __talon_show --on-event fish_prompt
        set -l file "$XDG_RUNTIME_DIR/talon/ghosts"
        test -O "$file"; or return
        read -l ghost <"$file"; or return
        test "$ghost" = "$__talon_ghost"; and return
        set -g __talon_ghost "$ghost"
        printf '%s\n' "$ghost"
    end
end
