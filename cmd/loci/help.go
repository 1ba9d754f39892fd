package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	helpWidth = 80 // columns of the help
	longTerm  = 30 // columns of a term with its meaning below it
)

// printHelp prints what a command does, with its arguments, flags and commands.
func printHelp(c *cobra.Command, expected []*field) {
	out := c.OutOrStdout()
	fmt.Fprintf(out, "Usage: %s\n", c.UseLine())
	if c.Short != "" {
		fmt.Fprintf(out, "\n%s\n", wrap(c.Short, helpWidth, ""))
	}
	var arguments, flags [][2]string
	for _, argument := range expected {
		arguments = append(arguments, [2]string{argument.placeholder(), argument.help()})
	}
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		letter := "    "
		if flag.Shorthand != "" {
			letter = "-" + flag.Shorthand + ", "
		}
		if !flag.Hidden {
			flags = append(flags, [2]string{letter + shown(flag), withVariables(flag)})
		}
	})
	printTerms(out, "Arguments", arguments)
	printTerms(out, "Flags", flags)
	for i, command := range runnable(c, false) {
		if i == 0 {
			fmt.Fprint(out, "\nCommands:")
		}
		fmt.Fprintf(out, "\n  %s\n    %s\n", strings.TrimPrefix(command.UseLine(), c.Root().Name()+" "),
			wrap(command.Short, helpWidth-4, "    "))
	}
	if !c.HasParent() {
		fmt.Fprintf(out, "\nRun \"%s <command> --help\" for more information on a command.\n", c.Name())
	}
}

// printTerms prints terms with their meanings beside them.
func printTerms(w io.Writer, title string, terms [][2]string) {
	widest := 0
	for _, term := range terms {
		if n := len(term[0]); n < longTerm {
			widest = max(widest, n)
		}
	}
	for i, term := range terms {
		if i == 0 {
			fmt.Fprintf(w, "\n%s:\n", title)
		}
		name, margin := term[0], strings.Repeat(" ", widest+6)
		if len(name) >= longTerm {
			name = fmt.Sprintf("%s\n%*s", name, widest+2, "")
		}
		fmt.Fprintf(w, "  %-*s    %s\n", widest, name, wrap(term[1], helpWidth-len(margin), margin))
	}
}

// wrap breaks a text into lines of a width. Lines after the first one begin with a margin.
func wrap(text string, width int, margin string) string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last]+word) < width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n"+margin)
}

// withVariables returns the help of a flag with the variables that set it.
func withVariables(flag *pflag.Flag) string {
	names := flag.Annotations[variables]
	if len(names) == 0 {
		return flag.Usage
	}
	return strings.TrimSuffix(flag.Usage, ".") + " ($" + strings.Join(names, ", $") + ")."
}

// shown returns a flag as the help shows it, with its default or with what stands for its value.
func shown(flag *pflag.Flag) string {
	f, _ := flag.Value.(*field)
	switch {
	case flag.DefValue == "" || flag.NoOptDefVal != "" || f.has("placeholder"):
		return summaryOf(flag)
	case f.target.Kind() == reflect.String:
		return "--" + flag.Name + "=" + strconv.Quote(flag.DefValue)
	case f.target.Kind() == reflect.Slice:
		return "--" + flag.Name + "=" + flag.DefValue + ",..."
	}
	return "--" + flag.Name + "=" + flag.DefValue
}

// runnable returns the commands below a command that can be run. Those that are hidden count only if hidden is set.
func runnable(c *cobra.Command, hidden bool) (list []*cobra.Command) {
	for _, command := range c.Commands() {
		switch {
		case command.Name() == "help", command.Hidden && !hidden: // cobra adds help
		case command.HasSubCommands():
			list = append(list, runnable(command, hidden)...)
		default:
			list = append(list, command)
		}
	}
	return list
}

// plainFlagError returns an error of pflag in Loci's words.
func plainFlagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return errors.New("unknown flag -" + name)
		}
		flags := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra suggests commands only
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: flag.Name, Hidden: flag.Hidden, Run: func(*cobra.Command, []string) {}})
		})
		return suggest("unknown flag --"+name, flags.SuggestionsFor(name), "--")
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return invalid.Unwrap()
	}
	return err
}

// suggest returns an error with the names that may have been meant.
func suggest(text string, names []string, prefix string) error {
	switch len(names) {
	case 0:
		return errors.New(text)
	case 1:
		return fmt.Errorf("%s, did you mean %s?", text, quoted(names, prefix))
	}
	return fmt.Errorf("%s, did you mean one of %s?", text, quoted(names, prefix))
}

func quoted(names []string, prefix string) string {
	return `"` + prefix + strings.Join(names, `", "`+prefix) + `"`
}
