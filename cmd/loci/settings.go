package main

import (
	"os"
	"reflect"

	"github.com/alecthomas/kong"
)

// configCmd prints the settings that a server started here would have.
type configCmd struct{ asked }

// setting is a setting of 'loci serve' with its value.
type setting struct {
	Variable string `json:"variable"`
	Flag     string `json:"flag"`
	Value    string `json:"value"`  // empty for none; hidden for a secret
	Origin   string `json:"origin"` // environment or default
	Meaning  string `json:"meaning"`
}

// Run implements the command.
func (c configCmd) Run(command *kong.Context, s streams) error {
	list := settingsOf(command.Model, os.LookupEnv)
	if c.JSON {
		return printJSON(s, list)
	}
	rows := make([][]string, len(list))
	for i, one := range list {
		rows[i] = []string{one.Variable, one.Value, one.Origin}
	}
	return printTable(s, "SETTING | VALUE | FROM", rows)
}

// settingsOf returns the settings of 'loci serve', with the values that an environment gives them.
func settingsOf(program *kong.Application, lookup func(string) (string, bool)) (list []setting) {
	for _, command := range program.Children {
		if command.Name != "serve" {
			continue
		}
		for _, f := range command.Flags {
			if !f.Hidden && len(f.Envs) > 0 {
				list = append(list, settingOf(f, lookup))
			}
		}
	}
	return list
}

func settingOf(f *kong.Flag, lookup func(string) (string, bool)) setting {
	one := setting{Variable: f.Envs[0], Flag: "--" + f.Name, Value: f.Default, Origin: "default", Meaning: f.Help}
	for _, name := range f.Envs {
		if value, set := lookup(name); set {
			one.Variable, one.Value, one.Origin = name, value, "environment"
			break
		}
	}
	if f.Target.Type() == reflect.TypeFor[secret]() && one.Value != "" {
		one.Value = secret(one.Value).String()
	}
	return one
}
