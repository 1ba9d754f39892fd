package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runner is a command that can be run. Its flags and arguments are the fields of its struct.
type runner interface {
	Run(ctx context.Context, s streams) error
}

// binder makes a command of cobra from a struct. A field of type *cobra.Command gets the command. Tags say what another
// field is:
//   - cmd: a command of a group; default makes it the one that runs if none is named, hidden leaves it out of the help
//   - arg: an argument; optional makes it one that may be left out. A list takes all arguments that are left.
//   - neither: a flag. Names of flags in an embedded struct begin with its prefix, their variables with its envprefix.
//
// help says what the field is for, name replaces the name made from the field's, aliases is another name of a flag, and
// short is its letter. The other tags are listed at field.
type binder struct {
	*cobra.Command
	command   runner // nil for a group without a default command
	arguments []*field
	aliases   map[string]string // names of flags, by their aliases
	run       func(*cobra.Command, runner) error
}

// newCommand returns a command with the commands, flags and arguments of a struct, the target. run runs a command after
// its struct is set.
func newCommand(name, help string, target reflect.Value, run func(*cobra.Command, runner) error) *cobra.Command {
	b := &binder{run: run, aliases: map[string]string{}, Command: &cobra.Command{Use: name, Short: help,
		Args: cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2}}
	b.Flags().SortFlags = false
	b.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(b.aliases[name], name))
	})
	b.Flags().BoolP("help", "h", false, "Show context-sensitive help.")
	b.SetHelpFunc(func(*cobra.Command, []string) { printHelp(b.Command, b.arguments) })
	b.SetFlagErrorFunc(plainFlagError)
	b.command, _ = reflect.TypeAssert[runner](target.Addr())
	b.bind(target, "", "")
	b.Flags().VisitAll(func(flag *pflag.Flag) {
		if f, _ := flag.Value.(*field); f != nil && f.has("required") {
			b.Use += " " + summaryOf(flag)
		}
	})
	for _, argument := range b.arguments {
		b.Use += " " + argument.placeholder()
		b.ValidArgs = append(b.ValidArgs, argument.choices()...)
	}
	if b.HasSubCommands() {
		b.Use, b.DisableFlagsInUseLine = name+" <command>", true
	}
	b.RunE = func(_ *cobra.Command, args []string) error {
		if b.command == nil || b.HasSubCommands() && len(args) > 0 {
			return noCommand(b.Command, args)
		}
		if err := b.take(args); err != nil {
			return err
		}
		return run(b.Command, b.command)
	}
	return b.Command
}

// bind makes commands, flags and arguments of the fields of a struct.
func (b *binder) bind(target reflect.Value, prefix, envPrefix string) {
	for i := range target.NumField() {
		of, value := target.Type().Field(i), target.Field(i)
		name := prefix + cmp.Or(of.Tag.Get("name"), dashed(of.Name))
		f := &field{target: value, tag: of.Tag, label: "--" + name}
		switch {
		case of.Anonymous:
			b.bind(value, prefix+of.Tag.Get("prefix"), envPrefix+of.Tag.Get("envprefix"))
		case value.Type() == reflect.TypeFor[*cobra.Command]():
			value.Set(reflect.ValueOf(b.Command))
		case f.has("cmd"):
			command := newCommand(name, of.Tag.Get("help"), value, b.run)
			command.Hidden = f.has("hidden")
			b.AddCommand(command)
			if f.has("default") { // the group has its flags, too
				b.command, _ = reflect.TypeAssert[runner](value.Addr())
				b.bind(value, "", "")
			}
		case f.has("arg"):
			f.label = "<" + name + ">"
			f.preset()
			b.arguments = append(b.arguments, f)
		default:
			f.preset()
			if alias := of.Tag.Get("aliases"); alias != "" {
				b.aliases[alias] = name
			}
			b.Flags().AddFlag(newFlag(name, f, envPrefix))
			if choices := f.choices(); len(choices) > 0 {
				complete := cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
				_ = b.RegisterFlagCompletionFunc(name, complete) // fails only for a flag that is not there
			}
		}
	}
}

// dashed returns the name of a flag or a command for the name of a field: max-runs for MaxRuns.
func dashed(name string) string { return strings.ToLower(wordEnd.ReplaceAllString(name, "$1$3-$2$4")) }

// wordEnd matches the end of a word in the name of a field, with the beginning of the next one.
var wordEnd = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// take sets the arguments, and the flags that only the environment sets. It returns an error if something is missing,
// empty or too much.
func (b *binder) take(args []string) error {
	var missing []string
	for _, argument := range b.arguments {
		own := args[:min(1, len(args))]
		if argument.target.Kind() == reflect.Slice {
			own = args
		}
		args = args[len(own):]
		for _, text := range own {
			err := argument.Set(text)
			if err == nil {
				err = refuseEmpty(text, argument.label, argument.has("optional"))
			}
			if err != nil {
				return err
			}
		}
		if len(own) == 0 && !argument.has("optional") {
			missing = append(missing, argument.placeholder())
		}
	}
	if len(args) > 0 {
		return errors.New("unexpected argument " + args[0])
	}
	err := setFromEnvironment(b.Flags(), os.LookupEnv)
	if err == nil {
		err = checkGiven(b.Flags())
	}
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("expected %q", strings.Join(missing, " "))
	}
	return err
}

// runLine runs the command that the arguments name. 'help' before its name is like --help after it.
func runLine(ctx context.Context, root *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	case len(args) > 0 && args[0] == "--":
		args = args[1:]
	}
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for the arguments of the process
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return root.ExecuteContext(ctx) // a shell completes a command line
	}
	group, rest, err := root.Find(args)
	if err == nil && group.HasSubCommands() && len(rest) > 0 && !flagLike.MatchString(rest[0]) {
		return noCommand(group, rest) // also before --help
	}
	if err == nil {
		err = checkValues(group.Flags(), rest)
	}
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	return err
}

// noCommand is the error for a group of commands if the arguments name none of it.
func noCommand(group *cobra.Command, args []string) error {
	if len(args) > 0 {
		return suggest("unexpected argument "+args[0], group.SuggestionsFor(args[0]), "")
	}
	var names []string
	for _, command := range group.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	if len(names) > 5 {
		return errors.New("expected a command: '" + group.CommandPath() + " --help' lists them")
	}
	return fmt.Errorf("expected one of %s", quoted(names, ""))
}

// checkValues returns an error if another flag stands where a flag needs its value. pflag would take it for the value.
func checkValues(flags *pflag.FlagSet, args []string) error {
	for i := range len(args) - 1 {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if isFlag && name == "" {
			return nil
		}
		if flag := flags.Lookup(name); isFlag && flag != nil && flag.NoOptDefVal == "" && flagLike.MatchString(args[i+1]) {
			return fmt.Errorf("--%s needs a value but got %[2]q; if that is the value, write --%[1]s=%[2]q", flag.Name,
				args[i+1])
		}
	}
	return nil
}

// flagLike matches arguments that are flags. A dash, which is a file, and a negative number are none.
var flagLike = regexp.MustCompile(`^-[^0-9.]`)
