package main

import "fmt"

// Machine describes the machine of the measurements.
type Machine struct {
	At       string `json:"at"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	System   string `json:"system"`
	Load     string `json:"load"` // before the run; shows other work on the machine
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
	Commit   string `json:"commit"`
}

// String describes the machine, in a line above a table.
func (m Machine) String() string {
	return fmt.Sprintf("%s: %d × %s, %s, %s, %s, load %s before, commit %s", m.At, m.Cores, m.CPU, m.System, m.Go,
		m.Postgres, m.Load, m.Commit)
}
