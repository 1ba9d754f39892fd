package agent

import (
	"cmp"
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// Limits returns the limits of the agent's files: the operator's, or those for the size of its window.
func (a Agent) Limits() files.Limits {
	l := files.LimitsFor(a.Window())
	l.OpensNone = a.Settings.OpenOnAttach != nil && !*a.Settings.OpenOnAttach
	l.MaxOpen, l.ViewChars = orTier(a.MaxFilesOpen, l.MaxOpen), orTier(a.ViewChars, l.ViewChars)
	return l
}

func orTier(own *int, tier int) int {
	if own == nil {
		return tier
	}
	return cmp.Or(*own, tier)
}

// MaxResultChars bounds the texts that tools return, in characters.
const MaxResultChars = 50_000

// ResultChars returns how many characters a tool's result may have that shows a text of any length: a quarter of the
// agent's window, where it is known, at 4 characters per token.
func (a Agent) ResultChars() int {
	if window := a.Window(); window > 0 {
		return min(MaxResultChars, window)
	}
	return MaxResultChars
}

// LimitsOf maps agent id → limits, in the form of files.Options.Limits.
func LimitsOf(ctx context.Context, d db.DB, org db.Org, ids []string) (map[string]files.Limits, error) {
	agents, err := db.All[Agent](ctx, d, `SELECT `+columns+` FROM agents WHERE org = $1 AND id = ANY ($2)`, org, ids)
	limits := make(map[string]files.Limits, len(agents))
	for _, a := range agents {
		limits[a.ID] = a.Limits()
	}
	return limits, err
}

func checkLimits(window, maxFiles, viewChars *int) error {
	for _, l := range []struct {
		name     string
		value    *int
		min, max int
	}{
		{"context_window_limit", window, 1, 100_000_000},
		{"max_files_open", maxFiles, 1, 1000},
		{"per_file_view_window_char_limit", viewChars, 100, 10_000_000},
	} {
		if l.value != nil && *l.value > l.max {
			return db.Invalid("%s cannot exceed %d. Got: %d", l.name, l.max, *l.value)
		}
		if l.value != nil && *l.value < l.min {
			return db.Invalid("%s must be at least %d. Got: %d", l.name, l.min, *l.value)
		}
	}
	return nil
}
