package rest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// A body may have a million unknown fields. Only fields that a warning names are compared with the known ones. The test
// measures this work by the allocated memory, so it cannot run in parallel.
func TestFewUnknownFieldsAreCompared(t *testing.T) {
	s := &Schema{Type: huma.TypeObject, Properties: map[string]*Schema{}}
	for i := range 50 {
		s.Properties[fmt.Sprintf("context_window_limit_%d", i)] = &Schema{Type: huma.TypeString}
	}
	allocations := func(fields int) float64 {
		body := make([]string, fields)
		for i := range body {
			body[i] = fmt.Sprintf(`"contxt_windw_%d":1`, i)
		}
		text := "{" + strings.Join(body, ",") + "}"
		return testing.AllocsPerRun(1, func() {
			var w Warnings
			kept, problem := checkNames(nil, s, "", []byte(text), &w)
			if problem != nil || string(kept) != "{}" || len(w) != maxWarnings {
				t.Errorf("%d fields: got %s, %d warnings, %v", fields, kept, len(w), problem)
			}
		})
	}
	few, many := allocations(maxWarnings), allocations(2*maxWarnings)
	if perField := (many - few) / maxWarnings; perField > few/maxWarnings/10 {
		t.Errorf("%.0f allocations of %d fields, %.0f of twice as many", few, maxWarnings, many)
	}
}
