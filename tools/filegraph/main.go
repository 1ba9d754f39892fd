// Command filegraph shows how the files of each package use each other: how many files there are, the lines of the
// longest, the largest knot, the arrows up, and the files that the package comment does not name. With -v it lists
// knots, arrows and files.
//
// Its files, in order: package.go reads a package; knot.go finds the knots of its graph and the arrows up; main.go
// prints the table.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	folder := flag.String("C", ".", "the folder in which patterns are read")
	verbose := flag.Bool("v", false, "list the knots, the arrows up and the unnamed files")
	asJSON := flag.Bool("json", false, "print all that was read, as JSON")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	packages, err := load(*folder, patterns...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "filegraph:", err)
		os.Exit(1)
	}
	if *asJSON {
		if err := json.NewEncoder(os.Stdout).Encode(packages); err != nil {
			fmt.Fprintln(os.Stderr, "filegraph:", err)
			os.Exit(1)
		}
		return
	}
	fmt.Printf("%-70s %5s %5s %5s %4s %7s\n", "package", "files", "lines", "knot", "up", "unnamed")
	for _, p := range packages {
		show(p, *verbose)
	}
}

// show prints a line about a package, and with verbose its details.
func show(p Package, verbose bool) {
	knots, arrows := p.Knots(), p.Up()
	_, unnamed := p.Order()
	largest, longest := 0, 0
	for _, lines := range p.Lines {
		longest = max(longest, lines)
	}
	if len(knots) > 0 {
		largest = len(knots[0])
	}
	fmt.Printf("%-70s %5d %5d %5d %4d %7d\n", p.Path, len(p.Files), longest, largest, len(arrows), len(unnamed))
	if !verbose {
		return
	}
	for _, knot := range knots {
		fmt.Println("  knot:", strings.Join(knot, " "))
	}
	for _, a := range arrows {
		fmt.Printf("  up: %s → %s: %s\n", a.From, a.To, strings.Join(a.Names, " "))
	}
	if len(unnamed) > 0 {
		fmt.Println("  unnamed:", strings.Join(unnamed, " "))
	}
}
