package subagent

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/memory/block"
)

// defaultNames are the names of the blocks and memory files that a default set of grants has, in lower case.
var defaultNames = []string{"agents", "tools", "soul"}

// memories is the path of the directory with all memory files.
const memories = "/memories"

// withDefaults returns the grants of blocks, followed by the default grants that they lack.
func (n New) withDefaults(has []block.Block) []Grant {
	all := slices.Clone(n.Blocks)
	if !n.Default {
		return all
	}
	for _, b := range has {
		named := slices.ContainsFunc(n.Blocks, func(g Grant) bool { return g.ID == b.ID || g.ID == b.Label })
		if !named && slices.Contains(defaultNames, strings.ToLower(b.Label)) {
			all = append(all, Grant{ID: b.ID, ReadOnly: true})
		}
	}
	return all
}

// grantFiles gives a new sub-agent the default memory files of its parent, those directly below /memories, as read-only
// blocks with their present text. It leaves out those of which the sub-agent has the block, and all if it has the
// parent's tree.
func (s *Store) grantFiles(ctx context.Context, org db.Org, parent, child agent.Agent, n New) error {
	if !n.Default || n.Tree != nil {
		return nil
	}
	t, err := s.Agents.MemoryFiles.OfAgent(ctx, org, parent.ID)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	files, err := s.Agents.MemoryFiles.List(ctx, org, t.ID, memories, db.Held{})
	if err != nil {
		return err
	}
	has, err := s.Agents.Blocks.OfAgent(ctx, org, child.ID)
	if err != nil {
		return err
	}
	for _, e := range files {
		ext := path.Ext(e.Path)
		name := strings.TrimSuffix(path.Base(e.Path), ext)
		isSame := func(b block.Block) bool { return strings.EqualFold(b.Label, name) }
		if path.Dir(e.Path) != memories || !slices.Contains([]string{"", ".md", ".txt"}, strings.ToLower(ext)) ||
			!slices.Contains(defaultNames, strings.ToLower(name)) || slices.ContainsFunc(has, isSame) {
			continue
		}
		f, err := s.Agents.MemoryFiles.File(ctx, org, t.ID, e.Path)
		if err != nil {
			return err
		}
		if strings.TrimSpace(f.Content) == "" {
			continue
		}
		b, err := s.Agents.Blocks.Create(ctx, org, block.OperatorAuthor, block.New{Label: name, Value: f.Content,
			Limit: max(block.DefaultLimit, utf8.RuneCountInString(f.Content)), ReadOnly: true, Hidden: true,
			Description: new(fmt.Sprintf("What %s of the agent that gave you your task said when you were started.", e.Path))})
		if err != nil {
			return err
		}
		if err := s.Agents.Blocks.AttachReadOnly(ctx, org, child.ID, b.ID); err != nil {
			return err
		}
		has = append(has, b)
	}
	return nil
}
