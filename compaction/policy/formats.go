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

// formats holds the formats of summaries, one file each.
//
//go:embed formats/*.json
var formats embed.FS

// Formats maps name → format of summaries, without Loci's own. If a format cannot be read, that is a fault of this
// package, and its tests find it.
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

// FormatName is a setting: the name of a format, or loci for the format of the mode in the agent's settings.
type FormatName string

// format returns the format; nil for loci.
func (n FormatName) format() *prose.Format { return Formats()[string(n)] }

func (FormatName) oneOf() []string {
	return append([]string{"loci"}, slices.Sorted(maps.Keys(Formats()))...)
}
