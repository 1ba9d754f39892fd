package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// confirm asks on a terminal whether to delete something. It returns an error for any answer but yes, and if there is
// no terminal.
func confirm(s streams, subject string) error {
	if !isatty.IsTerminal(os.Stdin.Fd()) {
		return settingError{fmt.Errorf("%s would be deleted: give --yes", subject)}
	}
	if !confirmed(s, fmt.Sprintf("Delete %s?", subject)) {
		return errors.New("nothing is deleted")
	}
	return nil
}

// confirmed asks a question, and reports whether the answer is yes.
func confirmed(s streams, question string) bool {
	fmt.Fprint(s.err, question+" [y/N] ")
	answer, _ := bufio.NewReader(s.in).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(answer), "y") || strings.EqualFold(strings.TrimSpace(answer), "yes")
}
