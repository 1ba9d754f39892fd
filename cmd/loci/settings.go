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

func (c configCmd) Run(command *kong.Context, s streams) error {
	list := settingsOf(command, os.LookupEnv)
	if c.JSON {
		return printJSON(s, list)
	}
	rows := make([][]string, len(list))
	for i, setting := range list {
		rows[i] = []string{setting.Variable, setting.Value, setting.Origin}
	}
	return printTable(s, "SETTING | VALUE | FROM", rows)
}

// settingsOf returns the settings of 'loci serve', with the values from a command line's flags and from an environment.
func settingsOf(line *kong.Context, lookup func(string) (string, bool)) (list []server.Setting) {
	flags := map[string]*kong.Flag{}
	for _, part := range line.Path {
		if part.Flag != nil && !part.Resolved {
			flags[part.Flag.Name] = part.Flag
		}
	}
	for _, command := range line.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, f := range command.Flags {
			if !f.Hidden && len(f.Envs) > 0 {
				list = append(list, settingOf(f, flags[f.Name], lookup))
			}
		}
	}
	return list
}

// notSettings matches variables of the tests, and variables that Kubernetes sets for a service called loci.
var notSettings = regexp.MustCompile(`^LOCI_(TEST|CHAOS|EVAL|SERVICE|PORT)(_|$)`)

// unknownSettings returns the variables of an environment that look like settings of Loci but are none. They may be
// misspelt.
func unknownSettings(program *kong.Application, environment []string) (names []string) {
	settings := map[string]bool{}
	_ = kong.Visit(program, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				settings[name] = true
			}
		}
		return next(nil)
	})
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "LOCI_") && !settings[name] && !notSettings.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// notASetting is a sentence that says so about a variable.
func notASetting(name string) string {
	return name + " is set, but Loci has no such setting: 'loci config' lists those it has"
}

// settingOf returns a setting. given is its flag on the command line, or nil; it wins over the environment.
func settingOf(f, given *kong.Flag, lookup func(string) (string, bool)) server.Setting {
	setting := server.Setting{Variable: f.Envs[0], Flag: "--" + f.Name, Value: f.Default, Origin: server.OfDefault,
		Meaning: f.Help}
	if f.IsBool() {
		setting.Value = "false" // a switch always has a value
	}
	if given != nil {
		setting.Value, setting.Origin = fmt.Sprint(given.Target.Interface()), server.OfFlag
	}
	for _, name := range f.Envs {
		if value, set := lookup(name); set && given == nil {
			setting.Variable, setting.Value, setting.Origin = name, value, server.OfEnvironment
			break
		}
	}
	if f.Target.Type() == reflect.TypeFor[secret]() && setting.Value != "" {
		setting.Value = secret(setting.Value).String()
	}
	setting.Value = withoutSecrets(setting.Value)
	return setting
}

// withoutSecrets removes the secrets from the URLs in a setting: users with their passwords, and the values of queries.
func withoutSecrets(value string) string {
	starts := urlStart.FindAllStringIndex(value, -1)
	if len(starts) == 0 {
		return value
	}
	var out strings.Builder
	out.WriteString(value[:starts[0][0]])
	for i, start := range starts {
		stop := len(value)
		if i+1 < len(starts) {
			stop = starts[i+1][0]
		}
		out.WriteString(maskedURL(value[start[0]:stop]))
	}
	return out.String()
}

// urlStart matches the beginning of a URL in a setting, with the comma or blank that separates it from the one before.
var urlStart = regexp.MustCompile(`(^|[,\s]+)[a-zA-Z][a-zA-Z0-9+.-]*://`)

// maskedURL returns a URL without its secrets. If the URL is invalid, everything after its scheme is masked.
func maskedURL(text string) string {
	hidden := secret(text).String()
	scheme, address, _ := strings.Cut(text, "://")
	if _, err := url.Parse("x://" + strings.TrimSpace(address)); err != nil {
		return scheme + "://" + hidden
	}
	place, query, hasQuery := strings.Cut(address, "?")
	if hostStart := strings.LastIndexByte(place, '@'); hostStart >= 0 {
		place = hidden + place[hostStart:]
	}
	if !hasQuery {
		return scheme + "://" + place
	}
	values := strings.Split(query, "&")
	for i, value := range values {
		name, _, hasValue := strings.Cut(value, "=")
		if values[i] = hidden; hasValue {
			values[i] = name + "=" + hidden
		}
	}
	return scheme + "://" + place + "?" + strings.Join(values, "&")
}
