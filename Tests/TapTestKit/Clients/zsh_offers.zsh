#!/usr/bin/zsh -f
# Prints what zsh offers: zsh_offers.zsh SCRIPT FOLDER LINE, where SCRIPT is the completion script. The line is typed in a
# terminal, with a tab behind it.
zmodload zsh/zpty
setup=$(mktemp)
trap 'rm -f $setup' EXIT
cat >$setup <<'SETUP'
PROMPT=
autoload -Uz compinit
compinit -D -u
bindkey '^I' complete-word
zstyle ':completion:*' insert-tab false
mark() { print -r -- $'\0' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
# What is added is printed; a call that only asks what would match adds nothing.
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a matches
    builtin compadd -A matches "$@"
    builtin compadd "$@"
    local status_of_compadd=$?
    (( $#matches )) && print -lr -- $matches
    return $status_of_compadd
}
SETUP
zpty terminal zsh -f -i
zpty -w terminal "unsetopt zle prompt_cr; source $setup; source ${(q)1}; cd ${(q)2}; setopt zle; print re''ady"
while zpty -r terminal line; do
    [[ $line == *ready* ]] && break
done
zpty -n -w terminal "$3"$'\t'
integer marks=0
while zpty -r terminal line; do
    line=${line%$'\r\n'}
    if [[ $line == *$'\0' ]]; then
        (( ++marks == 2 )) && break
    elif (( marks == 1 )); then
        print -r -- $line
    fi
done
