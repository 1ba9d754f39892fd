package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report is the result of a run.
type Report struct {
	Scale   string  `json:"scale"`
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`

	figures map[string][]byte // drawings, by the ending of the file name
}

// Side is one side of a comparison: the value that counts, and all measured values.
type Side struct {
	Value float64   `json:"value"`
	Raw   []float64 `json:"raw,omitempty"`
}

// Row is a measurement. Its target is a bound on the ratio or, if nothing is compared, on Loci's own value.
type Row struct {
	What    string         `json:"what"`
	Unit    string         `json:"unit"`
	Loci    Side           `json:"loci"`
	Against Side           `json:"against"`
	Versus  string         `json:"versus,omitempty"` // describes Against; empty if nothing is compared
	AtLeast float64        `json:"at_least,omitempty"`
	AtMost  float64        `json:"at_most,omitempty"`
	Note    string         `json:"note,omitempty"`
	Skipped string         `json:"skipped,omitempty"` // why nothing was measured
	Parts   map[string]Row `json:"parts,omitempty"`   // the measurements that the row shows the worst of
}

// measured adds a measurement of both sides.
func (r *Row) measured(loci, against float64) {
	r.Loci.Raw, r.Against.Raw = append(r.Loci.Raw, loci), append(r.Against.Raw, against)
}

// settle computes the values that count from the measured ones.
func (r *Row) settle(reduce func([]float64) float64) {
	r.Loci.Value = reduce(r.Loci.Raw)
	if len(r.Against.Raw) > 0 {
		r.Against.Value = reduce(r.Against.Raw)
	}
}

// ratio is Loci's value divided by the other side's.
func (r *Row) ratio() float64 { return r.Loci.Value / r.Against.Value }

// met reports whether the target is reached.
func (r *Row) met() bool {
	value := r.Loci.Value
	if r.Versus != "" {
		value = r.ratio()
	}
	return value >= r.AtLeast && (r.AtMost == 0 || value <= r.AtMost)
}

// keepWorse adds a named part. If the part's ratio is the worst so far, the row takes over its values.
func (r *Row) keepWorse(name string, part Row) {
	if len(r.Parts) == 0 || part.ratio() > r.ratio() {
		r.Loci, r.Against, r.Note = part.Loci, part.Against, part.Note
	}
	if r.Parts == nil {
		r.Parts = map[string]Row{}
	}
	part.Note = ""
	r.Parts[name] = part
}

// thin replaces the raw values by eleven quantiles: 0 %, 10 %, up to 100 %.
func (r *Row) thin() {
	for _, s := range []*Side{&r.Loci, &r.Against} {
		if len(s.Raw) == 0 {
			continue
		}
		slices.Sort(s.Raw)
		var quantiles []float64
		for i := range 11 {
			quantiles = append(quantiles, s.Raw[i*(len(s.Raw)-1)/10])
		}
		s.Raw = quantiles
	}
	r.Note = strings.TrimPrefix(r.Note+"; raw: each tenth of the runs, sorted", "; ")
}

func (r *Report) add(rows ...Row) { r.Rows = append(r.Rows, rows...) }

func (r *Report) skip(why string, rows ...Row) {
	for _, row := range rows {
		row.Skipped = why
		r.add(row)
	}
}

// Markdown returns the report as a table.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| what | Loci | against | ratio | target | met |\n| --- | --- | --- | --- | --- | --- |\n",
		r.Machine)
	for _, row := range r.Rows {
		b.WriteString(row.markdown() + "\n")
	}
	if r.Scale != "full" {
		fmt.Fprintf(&b, "\nThis is the %s scale: the targets hold for the full one.\n", r.Scale)
	}
	return b.String()
}

func (r *Row) markdown() string {
	description := r.What
	if r.Note != "" {
		description += " (" + r.Note + ")"
	}
	description = strings.ReplaceAll(description, "|", `\|`)
	target, bound, value := "", "≥", r.AtLeast
	if r.AtMost > 0 {
		bound, value = "≤", r.AtMost
	}
	if target = fmt.Sprintf("%s %g×", bound, value); r.Versus == "" {
		target = fmt.Sprintf("%s %g %s", bound, value, r.Unit)
	}
	if r.AtLeast == 0 && r.AtMost == 0 {
		target = "–"
	}
	if r.Skipped != "" {
		return fmt.Sprintf("| %s | – | %s | – | %s | not measured: %s |", description, r.Versus, target, r.Skipped)
	}
	comparison, ratio := "–", "–"
	if r.Versus != "" {
		comparison, ratio = r.shown(r.Against)+", "+r.Versus, number(r.ratio())+"×"
	}
	met := "no"
	switch {
	case target == "–":
		met = "–"
	case r.met():
		met = "yes"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", description, r.shown(r.Loci), comparison, ratio, target, met)
}

// shown formats a value with its unit.
func (r *Row) shown(s Side) string {
	if strings.HasPrefix(r.Unit, "/") {
		return number(s.Value) + r.Unit
	}
	return number(s.Value) + " " + r.Unit
}

// number formats a value with about three digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Keep writes the report to dir: as a table, and as JSON with every number.
func (r *Report) Keep(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(r); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), text.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".md"), []byte(r.Markdown()), 0o644)
}

// Draw writes the drawings to dir.
func (r *Report) Draw(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for ending, drawing := range r.figures {
		if err := os.WriteFile(filepath.Join(dir, name+"."+ending), drawing, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// median returns the middle value.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func least(list []float64) float64 { return slices.Min(list) }

func last(list []float64) float64 { return list[len(list)-1] }
