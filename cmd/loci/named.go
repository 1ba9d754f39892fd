package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
)

const uuidForm = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

// A text in the form of an ID is an ID; any other text is a name.
var (
	agentForm = regexp.MustCompile(`^agent-` + uuidForm + `$`)
	treeForm  = regexp.MustCompile(`^tree-` + uuidForm + `$`)

	archiveForm = regexp.MustCompile(`^archive-` + uuidForm + `$`)
)

// named is a thing with a name.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// maxNamesakes is how many IDs an error about an ambiguous name lists.
const maxNamesakes = 10

// agentID returns the ID of an agent that is given by name or ID. It is an error if no agent or several agents have the
// name.
func (r remote) agentID(ctx context.Context, nameOrID string) (string, error) {
	if agentForm.MatchString(nameOrID) {
		return nameOrID, nil
	}
	ids, err := r.agentsNamed(ctx, nameOrID)
	if err != nil {
		return "", err
	}
	return onlyAgent(nameOrID, ids)
}

// agentOrTreeID returns the ID of an agent or a memory tree that is given by name or ID.
func (r remote) agentOrTreeID(ctx context.Context, nameOrID string) (string, error) {
	if agentForm.MatchString(nameOrID) || treeForm.MatchString(nameOrID) {
		return nameOrID, nil
	}
	ids, err := r.agentsNamed(ctx, nameOrID)
	if err != nil {
		return "", err
	}
	trees, err := listAll[named](ctx, r, "/v1/memory-trees", url.Values{})
	if err != nil {
		return "", err
	}
	for _, t := range trees {
		if t.shown.Name == nameOrID {
			ids = append(ids, t.shown.ID)
		}
	}
	return onlyOne(kind{"agent or memory tree", "agents or memory trees",
		"'loci agents list' shows the agents, and GET /v1/memory-trees the trees"}, nameOrID, ids)
}

// isName reports whether a text is an agent's name and not its ID.
func isName(text string) bool { return !agentForm.MatchString(text) }

// agentsNamed returns the IDs of the agents with a name; see agentsOfName.
func (r remote) agentsNamed(ctx context.Context, name string) ([]string, error) {
	return agentsOfName(name, func(hidden bool) (list []named, err error) {
		query := url.Values{"name": {name}, "show_hidden_agents": {fmt.Sprint(hidden)}, "order": {"asc"},
			"limit": {fmt.Sprint(maxNamesakes + 1)}}
		err = r.get(ctx, "/v1/agents/?"+query.Encode(), &list)
		if refused, ok := errors.AsType[*refusedRequest](err); ok && refused.status == http.StatusForbidden {
			err = fmt.Errorf("find the agent %q by its name: %w. Give its ID", name, err)
		}
		return list, err
	})
}

// agentIDIn returns the ID of an agent of an organization, like remote.agentID, but from the database.
func agentIDIn(ctx context.Context, d db.DB, org db.Org, nameOrID string) (string, error) {
	if agentForm.MatchString(nameOrID) {
		return nameOrID, nil
	}
	ids, err := agentsOfName(nameOrID, func(hidden bool) (list []named, err error) {
		agents, err := (&agent.Store{DB: d}).List(ctx, org, agent.Filter{Name: nameOrID, Hidden: hidden},
			db.Page{Ascending: true, Limit: maxNamesakes + 1})
		for _, a := range agents {
			list = append(list, named{a.ID, a.Name})
		}
		return list, err
	})
	if err != nil {
		return "", err
	}
	return onlyAgent(nameOrID, ids)
}

// agentsOfName returns the IDs of agents with a name, the oldest first, at most maxNamesakes+1. Hidden agents count
// only if no other agent has the name. list returns agents; it may include some with other names.
func agentsOfName(name string, list func(hidden bool) ([]named, error)) (ids []string, err error) {
	for _, hidden := range []bool{false, true} {
		agents, err := list(hidden)
		if err != nil {
			return nil, err
		}
		for _, a := range agents {
			if a.Name == name {
				ids = append(ids, a.ID)
			}
		}
		if len(ids) > 0 {
			break
		}
	}
	return ids, nil
}

func onlyAgent(name string, ids []string) (string, error) {
	return onlyOne(kind{"agent", "agents", "'loci agents list' shows them"}, name, ids)
}

// kind describes the kind of thing that a name belongs to, for errors.
type kind struct{ one, several, listed string }

// onlyOne returns the only ID in ids. It returns an error if there is none, or more than one.
func onlyOne(k kind, name string, ids []string) (string, error) {
	switch n := len(ids); {
	case n == 0:
		return "", db.NotFound("there is no %s %q: %s", k.one, name, k.listed)
	case n == 1:
		return ids[0], nil
	case n > maxNamesakes:
		return "", db.Conflict("more than %d %s have the name %q: give the ID of one, such as %s; %s", maxNamesakes,
			k.several, name, strings.Join(ids[:maxNamesakes], ", "), k.listed)
	default:
		return "", db.Conflict("%d %s have the name %q: give the ID of one, %s", n, k.several, name,
			strings.Join(ids, ", "))
	}
}

// idPattern matches what may be an ID.
var idPattern = regexp.MustCompile(`^[a-z]+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
