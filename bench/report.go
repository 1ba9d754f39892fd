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

// Report is the outcome of a run.
type Report struct {
	Scale   string  `json:"scale"`
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`

	figures map[string][]byte // drawings, by the end of their files' names
}

// Side is one side of a comparison: the value that counts, and every one that was measured.
type Side struct {
	Value float64   `json:"value"`
	Raw   []float64 `json:"raw,omitempty"`
}

// Row is one measurement. Its target is a bound of the ratio, or of Loci's own value where nothing is compared.
type Row struct {
	What    string         `json:"what"`
	Unit    string         `json:"unit"`
	Loci    Side           `json:"loci"`
	Against Side           `json:"against"`
	Versus  string         `json:"versus,omitempty"` // what Against is; empty where nothing is compared
	AtLeast float64        `json:"at_least,omitempty"`
	AtMost  float64        `json:"at_most,omitempty"`
	Note    string         `json:"note,omitempty"`
	Skipped string         `json:"skipped,omitempty"` // why nothing was measured
	Parts   map[string]Row `json:"parts,omitempty"`   // what the row is the worst of
}

// measured adds a run of both sides.
func (r *Row) measured(loci, against float64) {
	r.Loci.Raw, r.Against.Raw = append(r.Loci.Raw, loci), append(r.Against.Raw, against)
}

// settle makes the values that count of those measured.
func (r *Row) settle(of func([]float64) float64) {
	r.Loci.Value = of(r.Loci.Raw)
	if len(r.Against.Raw) > 0 {
		r.Against.Value = of(r.Against.Raw)
	}
}

// ratio is Loci's value as a multiple of the other.
func (r *Row) ratio() float64 { return r.Loci.Value / r.Against.Value }

// met reports whether the target is reached.
func (r *Row) met() bool {
	value := r.Loci.Value
	if r.Versus != "" {
		value = r.ratio()
	}
	return value >= r.AtLeast && (r.AtMost == 0 || value <= r.AtMost)
}

// keepWorse adds a named part, and takes over its values if its ratio is the worst so far.
func (r *Row) keepWorse(name string, other Row) {
	if len(r.Parts) == 0 || other.ratio() > r.ratio() {
		r.Loci, r.Against, r.Note = other.Loci, other.Against, other.Note
	}
	if r.Parts == nil {
		r.Parts = map[string]Row{}
	}
	other.Note = ""
	r.Parts[name] = other
}

// thin keeps every tenth quantile of many runs.
func (r *Row) thin() {
	for _, s := range []*Side{&r.Loci, &r.Against} {
		if len(s.Raw) == 0 {
			continue
		}
		slices.Sort(s.Raw)
		var kept []float64
		for i := range 11 {
			kept = append(kept, s.Raw[i*(len(s.Raw)-1)/10])
		}
		s.Raw = kept
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
	what := r.What
	if r.Note != "" {
		what += " (" + r.Note + ")"
	}
	what = strings.ReplaceAll(what, "|", `\|`)
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
		return fmt.Sprintf("| %s | – | %s | – | %s | not measured: %s |", what, r.Versus, target, r.Skipped)
	}
	against, ratio := "–", "–"
	if r.Versus != "" {
		against, ratio = r.shown(r.Against)+", "+r.Versus, number(r.ratio())+"×"
	}
	met := "no"
	switch {
	case target == "–":
		met = "–"
	case r.met():
		met = "yes"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", what, r.shown(r.Loci), against, ratio, target, met)
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

// Keep writes the report to dir, as a table and with every number.
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

// Draw writes the figures to dir.
func (r *Report) Draw(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for end, drawing := range r.figures {
		if err := os.WriteFile(filepath.Join(dir, name+"."+end), drawing, 0o644); err != nil {
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
