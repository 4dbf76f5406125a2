# Reports each command that ended to `talon watch`: the command line, its exit code, directory and duration.
# Commands that begin with a space are not reported. Nothing waits, and without a watcher nothing happens.
if [[ -o interactive && -z ${__talon_watch-} ]] && zmodload zsh/datetime 2>/dev/null; then
  typeset -g __talon_watch=@PROGRAM@ __talon_text= __talon_ghost=
  typeset -gF __talon_started=0
  __talon_preexec() {
    __talon_text=$1
    __talon_started=$EPOCHREALTIME
  }
  # Shows a ghost that waits, once, where the watcher's `show_ghosts` asks for it.
  __talon_show() {
    local file=${XDG_RUNTIME_DIR-}/talon/ghosts ghost
    if [[ -O $file ]] && IFS= read -r ghost <"$file" && [[ $ghost != "$__talon_ghost" ]]; then
      __talon_ghost=$ghost
      print -r -- "$ghost"
    fi
  }
  __talon_precmd() {
    local code=$? text=$__talon_text
    __talon_text=
    __talon_show
    # Nothing was run, or it began with a space.
    [[ -z $text || $text == [[:space:]]* ]] && return $code
    local -i ms=$(( (EPOCHREALTIME - __talon_started) * 1000 ))
    (print -rn -- "$text" | "$__talon_watch" report --exit $code --directory "$PWD" --duration-ms $ms >/dev/null 2>&1 &)
    return $code
  }
  typeset -ga preexec_functions precmd_functions
  preexec_functions=(__talon_preexec $preexec_functions)
  # The first one sees the command's exit code.
  precmd_functions=(__talon_precmd $precmd_functions)
fi
