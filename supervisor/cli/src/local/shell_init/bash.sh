# Reports each command that ended to `talon watch`: the command line, its exit code, directory and duration.
# Commands that begin with a space are not reported. Nothing waits, and without a watcher nothing happens.
if [[ $- == *i* && -z ${__talon_watch-} && ${BASH_VERSINFO[0]}${BASH_VERSINFO[1]} -ge 44 ]]; then
  __talon_watch=@PROGRAM@
  __talon_started= __talon_number= __talon_word= __talon_none= __talon_ghost=
  # Shows a ghost that waits, once, where the watcher's `show_ghosts` asks for it.
  __talon_show() {
    local file=${XDG_RUNTIME_DIR-}/talon/ghosts ghost
    if [[ -O $file ]] && IFS= read -r ghost <"$file" && [[ $ghost != "$__talon_ghost" ]]; then
      __talon_ghost=$ghost
      printf '%s\n' "$ghost"
    fi
  }
  # $1: the exit code; $2: the last word of the command.
  __talon_prompt() {
    local code=$1 word=$2 started=$__talon_started entry number text ms=0
    __talon_started=
    __talon_show
    # Nothing was run: an empty line, or the first prompt.
    [[ -n $started ]] || return "$code"
    entry=$(HISTTIMEFORMAT= builtin history 1)
    [[ $entry =~ ^[[:space:]]*([0-9]+)[*\ ]\ (.*)$ ]] || return "$code"
    number=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    # HISTCONTROL keeps some commands out of the history: a repeated one, which ends with the same word, and one that
    # begins with a space, which is not reported.
    if [[ $number == "$__talon_number" && $word != "$__talon_word" ]]; then
      return "$code"
    fi
    __talon_number=$number __talon_word=$word
    [[ $text == [[:space:]]* ]] && return "$code"
    if [[ -n ${EPOCHREALTIME-} && $started -gt 0 ]]; then
      ms=$(((${EPOCHREALTIME/[.,]/} - started) / 1000))
    fi
    (printf '%s' "$text" | "$__talon_watch" report --exit "$code" --directory "$PWD" --duration-ms "$ms" >/dev/null 2>&1 &)
    return "$code"
  }
  # Expanded when a command is started; it expands to nothing.
  PS0=${PS0-}'${__talon_none:(__talon_started=${EPOCHREALTIME/[.,]/}+0):0}'
  if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == "declare -a"* ]]; then
    PROMPT_COMMAND=('__talon_prompt "$?" "$_"' "${PROMPT_COMMAND[@]}")
  else
    PROMPT_COMMAND='__talon_prompt "$?" "$_"'${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
  fi
fi
