package main

import (
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/loci-memory/loci/server"
)

// configCmd prints the settings that a server started here would have.
type configCmd struct{ asked }

// Run implements the command.
func (c configCmd) Run(command *kong.Context, s streams) error {
	list := settingsOf(command, os.LookupEnv)
	if c.JSON {
		return printJSON(s, list)
	}
	rows := make([][]string, len(list))
	for i, one := range list {
		rows[i] = []string{one.Variable, one.Value, one.Origin}
	}
	return printTable(s, "SETTING | VALUE | FROM", rows)
}

// settingsOf returns the settings of 'loci serve', with the values that the flags of a command line and an environment
// give them.
func settingsOf(line *kong.Context, lookup func(string) (string, bool)) (list []server.Setting) {
	given := map[string]*kong.Flag{}
	for _, part := range line.Path {
		if part.Flag != nil && !part.Resolved {
			given[part.Flag.Name] = part.Flag
		}
	}
	for _, command := range line.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, f := range command.Flags {
			if !f.Hidden && len(f.Envs) > 0 {
				list = append(list, settingOf(f, given[f.Name], lookup))
			}
		}
	}
	return list
}

// notSettings matches variables of the tests, and those that Kubernetes makes of a service that is called loci.
var notSettings = regexp.MustCompile(`^LOCI_(TEST|CHAOS|EVAL|SERVICE|PORT)(_|$)`)

// unknownSettings returns the variables of an environment that are called like settings of Loci and are none: somebody
// misspelt them.
func unknownSettings(program *kong.Application, environment []string) (names []string) {
	known := map[string]bool{}
	_ = kong.Visit(program, func(node kong.Visitable, next kong.Next) error {
		if flag, is := node.(*kong.Flag); is {
			for _, name := range flag.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "LOCI_") && !known[name] && !notSettings.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// notASetting says so of a variable.
func notASetting(name string) string {
	return name + " is set, but Loci has no such setting: 'loci config' lists those it has"
}

// settingOf returns a setting. given is its flag of the command that is run, if it is on the command line, which wins
// over the environment.
func settingOf(f, given *kong.Flag, lookup func(string) (string, bool)) server.Setting {
	one := server.Setting{Variable: f.Envs[0], Flag: "--" + f.Name, Value: f.Default, Origin: server.OfDefault,
		Meaning: f.Help}
	if f.IsBool() {
		one.Value = "false" // a switch is never without a value
	}
	if given != nil {
		one.Value, one.Origin = fmt.Sprint(given.Target.Interface()), server.OfFlag
	}
	for _, name := range f.Envs {
		if value, set := lookup(name); set && given == nil {
			one.Variable, one.Value, one.Origin = name, value, server.OfEnvironment
			break
		}
	}
	if f.Target.Type() == reflect.TypeFor[secret]() && one.Value != "" {
		one.Value = secret(one.Value).String()
	}
	one.Value = withoutSecrets(one.Value)
	return one
}

// withoutSecrets returns a setting without the secrets in its URLs: users with their passwords, and values of queries.
func withoutSecrets(value string) string {
	starts := urlStart.FindAllStringIndex(value, -1)
	if len(starts) == 0 {
		return value
	}
	var out strings.Builder
	out.WriteString(value[:starts[0][0]])
	for i, at := range starts {
		end := len(value)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		out.WriteString(maskedURL(value[at[0]:end]))
	}
	return out.String()
}

// urlStart matches where a URL of a setting begins, with the comma or the blank that parts it from the one before.
var urlStart = regexp.MustCompile(`(^|[,\s]+)[a-zA-Z][a-zA-Z0-9+.-]*://`)

// maskedURL returns a URL without its secrets; one that cannot be read, without all behind its scheme.
func maskedURL(text string) string {
	hidden := secret(text).String()
	scheme, rest, _ := strings.Cut(text, "://")
	if _, err := url.Parse("x://" + strings.TrimSpace(rest)); err != nil {
		return scheme + "://" + hidden
	}
	place, query, asks := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(place, '@'); at >= 0 {
		place = hidden + place[at:]
	}
	if !asks {
		return scheme + "://" + place
	}
	values := strings.Split(query, "&")
	for i, value := range values {
		name, _, named := strings.Cut(value, "=")
		if values[i] = hidden; named {
			values[i] = name + "=" + hidden
		}
	}
	return scheme + "://" + place + "?" + strings.Join(values, "&")
}
