package policy

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/loci-memory/loci/compaction/prose"
)

// formats holds the formats of summaries as data, a file for each.
//
//go:embed formats/*.json
var formats embed.FS

// Formats returns the formats of summaries but Loci's, by name. A format that cannot be read is a fault of this
// package, which its tests find.
var Formats = sync.OnceValue(func() map[string]*prose.Format {
	all := map[string]*prose.Format{}
	files, err := formats.ReadDir("formats")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		raw, err := formats.ReadFile(path.Join("formats", f.Name()))
		if err != nil {
			panic(err)
		}
		var one prose.Format
		if err := decode(raw, &one); err != nil {
			panic(fmt.Errorf("format %s: %w", f.Name(), err))
		}
		all[strings.TrimSuffix(f.Name(), ".json")] = &one
	}
	return all
})

// FormatName is a setting: the name of a format, or loci for that of the mode of the agent's settings.
type FormatName string

// format returns the format; nil for Loci's.
func (n FormatName) format() *prose.Format { return Formats()[string(n)] }

func (FormatName) oneOf() []string {
	return append([]string{"loci"}, slices.Sorted(maps.Keys(Formats()))...)
}
