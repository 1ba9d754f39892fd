package policy

import (
	"embed"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/loci-memory/loci/db"
)

// presets holds the presets, one file each: {"title", "source", "description", "steps"}.
//
//go:embed presets/*.json
var presets embed.FS

// PresetInfo describes a preset.
type PresetInfo struct {
	Name        string `json:"-"`
	Title       string `json:"title"`
	Source      string `json:"source"`      // the harness that works like this, and how the preset differs from it
	Description string `json:"description"` // helps a reader to choose
	policy      Policy
}

// readPresets reads the presets once. If a preset cannot be read, that is a fault of this package, and its tests find
// it.
var readPresets = sync.OnceValue(func() []PresetInfo {
	files, err := presets.ReadDir("presets")
	if err != nil {
		panic(err)
	}
	var all []PresetInfo
	for _, f := range files {
		raw, err := presets.ReadFile(path.Join("presets", f.Name()))
		if err != nil {
			panic(err)
		}
		var of struct {
			PresetInfo
			Steps json.RawMessage `json:"steps"`
		}
		if err := decode(raw, &of); err != nil {
			panic(fmt.Errorf("preset %s: %w", f.Name(), err))
		}
		p, err := pipeline(of.Steps)
		if err != nil {
			panic(fmt.Errorf("preset %s: %w", f.Name(), err))
		}
		of.Name = strings.TrimSuffix(f.Name(), ".json")
		p.Preset = of.Name
		of.policy = p
		all = append(all, of.PresetInfo)
	}
	return all
})

// Presets returns all presets, by name.
func Presets() []PresetInfo { return readPresets() }

// Policy returns the preset's policy.
func (p PresetInfo) Policy() Policy { return p.policy }

// Preset returns the policy of a preset. If there is no such preset, ErrInvalid lists all presets.
func Preset(name string) (Policy, error) {
	all := Presets()
	i := slices.IndexFunc(all, func(p PresetInfo) bool { return p.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for i, p := range all {
			names[i] = p.Name
		}
		return Policy{}, db.Invalid("There is no policy %q. The presets are %s", db.Short(name), strings.Join(names, ", "))
	}
	return all[i].policy, nil
}

// UpTo returns, as JSON, a policy for prompts of at most some tokens. Above them the oldest messages are summarized;
// the newest, up to half of the tokens, stay.
func UpTo(tokens int) []byte {
	return fmt.Appendf(nil, `{"steps":[{"step":"tokens","above_tokens":%d},
		{"step":"keep_recent","keep_recent_tokens":%d,"split_turns":false,"summary":"loci"}]}`, tokens, max(tokens/2, 1))
}

// Within yields policies to try in turn on one prompt, until it has at most a number of tokens. Each is UpTo, first for
// more tokens, because a prompt that is compacted has fewer than its policy allows.
func Within(tokens int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, share := range []float64{1.8, 1.6, 1.4, 1.2, 1} {
			if !yield(UpTo(int(share * float64(tokens)))) {
				return
			}
		}
	}
}
