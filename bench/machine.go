package main

import "fmt"

// Machine is what the measurements were taken on.
type Machine struct {
	At       string `json:"at"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	System   string `json:"system"`
	Load     string `json:"load"` // before the run: what others had to do
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
	Commit   string `json:"commit"`
}

// String is a line above a table.
func (m Machine) String() string {
	return fmt.Sprintf("%s: %d × %s, %s, %s, %s, load %s before, commit %s", m.At, m.Cores, m.CPU, m.System, m.Go,
		m.Postgres, m.Load, m.Commit)
}
