package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// field is a field of a command's struct: the value of a flag or an argument. These tags say what the field takes:
//   - default: the value without the flag
//   - env: variables that set it, the first one that is set counts; the flag wins over them
//   - enum: the values that it may have
//   - type: agent or agent-or-tree for the name or the ID of one, existingfile for the path of a file
//   - sep: "none" if commas do not separate the values of a list
//   - required, and xor: flags of one group, of which only one may be given
//   - placeholder: what the help shows for the value
type field struct {
	target reflect.Value
	tag    reflect.StructTag
	label  string // what errors call it: --addr or <file>
	given  bool   // it is set by the command line or the environment
}

// preset gives the field its default.
func (f *field) preset() {
	if text := f.tag.Get("default"); text != "" {
		if err := f.Set(text); err != nil {
			panic(err) // the default is compiled in
		}
		f.given = false
	}
}

// Set implements pflag.Value. A list gets one more value, or several between commas. The first one replaces its
// default.
func (f *field) Set(text string) error {
	if f.target.Kind() == reflect.Slice && !f.given {
		f.target.SetZero()
	}
	f.given = true
	if err := f.decode(text); err != nil {
		return fmt.Errorf("%s: %w", f.label, err)
	}
	if enum := f.tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), text) {
		choices := strings.Join(f.choices(), `","`)
		return fmt.Errorf("%s must be one of \"%s\" but got %q", f.label, choices, text)
	}
	return nil
}

// String implements pflag.Value.
func (f *field) String() string { return fmt.Sprint(f.target.Interface()) }

// secretType is the type of flags with secrets.
const secretType = "SECRET"

// Type implements pflag.Value. It returns what the help shows for a value without a default.
func (f *field) Type() string {
	kind, name := f.target.Type(), strings.ToUpper(strings.Trim(f.label, "-<>"))
	switch {
	case f.tag.Get("placeholder") != "":
		return f.tag.Get("placeholder")
	case kind.Kind() == reflect.Bool:
		return "bool" // as cobra calls it
	case kind.Kind() == reflect.Slice && f.tag.Get("sep") != "none":
		return name + ",..."
	case kind.Kind() == reflect.Slice || kind.Kind() == reflect.Pointer:
		return name
	case kind.Kind() == reflect.Float64:
		return "NUMBER"
	}
	return strings.ToUpper(kind.Name()) // of the secrets it is secretType
}

func (f *field) has(tag string) bool {
	_, found := f.tag.Lookup(tag)
	return found
}

// choices returns the values that the field may have, if they are limited, without the empty value of an absent flag.
func (f *field) choices() []string {
	return strings.FieldsFunc(f.tag.Get("enum"), func(r rune) bool { return r == ',' })
}

// help returns what the field is for.
func (f *field) help() string {
	return strings.ReplaceAll(f.tag.Get("help"), "${enum}", strings.Join(f.choices(), ","))
}

// decode sets the target to what a text says, or adds it to a list.
func (f *field) decode(text string) (err error) {
	if own, ok := reflect.TypeAssert[interface{ Set(string) error }](f.target.Addr()); ok {
		return own.Set(text)
	}
	switch f.tag.Get("type") {
	case "agent":
		err = checkNameOrID(text, "an agent")
	case "agent-or-tree":
		err = checkNameOrID(text, "an agent or a memory tree")
	case "existingfile":
		text, err = existingFile(text)
	}
	if err != nil {
		return err
	}
	switch f.target.Kind() {
	case reflect.Slice:
		for _, value := range f.split(text) {
			f.target.Set(reflect.Append(f.target, reflect.ValueOf(value)))
		}
		return nil
	case reflect.Pointer:
		f.target.Set(reflect.New(f.target.Type().Elem()))
		return setScalar(f.target.Elem(), text)
	}
	return setScalar(f.target, text)
}

// split returns the values of a list in a text. An argument is one value.
func (f *field) split(text string) []string {
	switch {
	case f.tag.Get("sep") == "none" || !strings.HasPrefix(f.label, "-"):
		return []string{text}
	case text == "":
		return nil
	}
	return strings.Split(text, ",")
}

// setScalar sets a target that is a string, a number, a bool or a duration.
func setScalar(target reflect.Value, text string) error {
	switch {
	case target.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("expected a duration such as 90s or 5m but got %q", text)
		}
		target.SetInt(int64(d))
	case target.CanInt():
		n, err := strconv.ParseInt(text, 0, target.Type().Bits())
		if errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("the number %q is too large", text)
		} else if err != nil {
			return fmt.Errorf("expected a whole number but got %q", text)
		}
		target.SetInt(n)
	case target.CanFloat():
		n, err := strconv.ParseFloat(text, target.Type().Bits())
		if err != nil {
			return fmt.Errorf("expected a number but got %q", text)
		}
		target.SetFloat(n)
	case target.Kind() == reflect.Bool:
		yes := slices.Contains([]string{"true", "1", "yes"}, strings.ToLower(text))
		if !yes && !slices.Contains([]string{"false", "0", "no"}, strings.ToLower(text)) {
			return fmt.Errorf("expected true or false but got %q", text)
		}
		target.SetBool(yes)
	default:
		target.SetString(text)
	}
	return nil
}

// existingFile returns the path of a file, in which ~ stands for the user's home directory.
func existingFile(path string) (string, error) {
	if path == "-" {
		return path, nil
	}
	if inHome, found := strings.CutPrefix(path, "~/"); found {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, inHome)
		}
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%q exists but is a directory", path)
	}
	return path, err
}

// variables is the annotation of a flag that names the variables that set it.
const variables = "variables"

// newFlag returns the flag of a field.
func newFlag(name string, f *field, envPrefix string) *pflag.Flag {
	flag := &pflag.Flag{Name: name, Shorthand: f.tag.Get("short"), Usage: f.help(), Value: f,
		DefValue: f.tag.Get("default"), Hidden: f.has("hidden")}
	if f.target.Kind() == reflect.Bool {
		flag.NoOptDefVal = "true"
	}
	if env := f.tag.Get("env"); env != "" {
		names := strings.Split(env, ",")
		for i := range names {
			names[i] = envPrefix + names[i]
		}
		flag.Annotations = map[string][]string{variables: names}
	}
	return flag
}

// summaryOf returns a flag as it is written: --addr=STRING.
func summaryOf(flag *pflag.Flag) string {
	if flag.NoOptDefVal != "" {
		return "--" + flag.Name
	}
	return "--" + flag.Name + "=" + flag.Value.Type()
}

// placeholder returns what stands for an argument in the help.
func (f *field) placeholder() string {
	text := f.label
	if f.target.Kind() == reflect.Slice {
		text += " ..."
	}
	if f.has("optional") {
		text = "[" + text + "]"
	}
	return text
}

// setFromEnvironment sets the flags that the command line does not name from an environment.
func setFromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) (err error) {
	flags.VisitAll(func(flag *pflag.Flag) {
		for _, name := range flag.Annotations[variables] {
			value, set := lookup(name)
			if !set || flag.Changed || err != nil {
				continue
			}
			if err = flag.Value.Set(value); err != nil {
				err = fmt.Errorf("%w (from %s)", err, name)
			}
			return
		}
	})
	return err
}

// checkGiven returns an error if a required flag is missing, or if several flags of an xor group are given.
func checkGiven(flags *pflag.FlagSet) (err error) {
	given, required, missing := map[string]string{}, map[string][]string{}, []string{} // the first two by group
	flags.VisitAll(func(flag *pflag.Flag) {
		f, _ := flag.Value.(*field)
		if f == nil { // --help
			return
		}
		group := cmp.Or(f.tag.Get("xor"), flag.Name)
		if other := given[group]; f.given && other != "" && err == nil {
			err = fmt.Errorf("--%s and --%s can't be used together", other, flag.Name)
		} else if f.given {
			given[group] = flag.Name
		}
		if f.has("required") {
			required[group] = append(required[group], summaryOf(flag))
		}
	})
	for _, group := range slices.Sorted(maps.Keys(required)) {
		if given[group] == "" {
			missing = append(missing, strings.Join(required[group], " or "))
		}
	}
	if err == nil && len(missing) > 0 {
		err = errors.New("missing flags: " + strings.Join(missing, ", "))
	}
	return err
}
