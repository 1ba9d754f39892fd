package main

import (
	"context"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loci-memory/loci/server"
)

// configCmd prints the settings that a server started here would have.
type configCmd struct {
	asked
	Line *cobra.Command
}

func (c configCmd) Run(_ context.Context, s streams) error {
	list := settingsOf(c.Line, os.LookupEnv)
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
func settingsOf(line *cobra.Command, lookup func(string) (string, bool)) (list []server.Setting) {
	for _, command := range line.Root().Commands() {
		if command.Name() != "serve" {
			continue
		}
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && len(flag.Annotations[variables]) > 0 {
				list = append(list, settingOf(flag, line.Flags().Lookup(flag.Name), lookup))
			}
		})
	}
	return list
}

// notSettings matches variables of the tests, and variables that Kubernetes sets for a service called loci.
var notSettings = regexp.MustCompile(`^LOCI_(TEST|CHAOS|EVAL|SERVICE|PORT)(_|$)`)

// unknownSettings returns the variables of an environment that look like settings of Loci but are none. They may be
// misspelt.
func unknownSettings(program *cobra.Command, environment []string) (names []string) {
	settings := map[string]bool{}
	for _, command := range runnable(program, true) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			for _, name := range flag.Annotations[variables] {
				settings[name] = true
			}
		})
	}
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

// settingOf returns a setting. given is its flag on the command line, or nil. A flag that is set wins over the
// environment.
func settingOf(f, given *pflag.Flag, lookup func(string) (string, bool)) server.Setting {
	names := f.Annotations[variables]
	setting := server.Setting{Variable: names[0], Flag: "--" + f.Name, Value: f.DefValue, Origin: server.OfDefault,
		Meaning: f.Usage}
	if f.NoOptDefVal != "" {
		setting.Value = "false" // a switch always has a value
	}
	if given != nil && given.Changed {
		setting.Value, setting.Origin = given.Value.String(), server.OfFlag
	}
	for _, name := range names {
		if value, set := lookup(name); set && setting.Origin != server.OfFlag {
			setting.Variable, setting.Value, setting.Origin = name, value, server.OfEnvironment
			break
		}
	}
	if f.Value.Type() == secretType && setting.Value != "" {
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
