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

// A text that has the form of an ID is an ID, and any other text is a name.
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

// maxNamesakes is how many IDs the error of a name that several things have lists.
const maxNamesakes = 10

// agentID returns the ID of the agent that a text names. A name that no agent or several have is an error.
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

// agentOrTreeID returns the ID of the agent or the memory tree that a text names.
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

// isName reports whether a text names an agent by its name.
func isName(text string) bool { return !agentForm.MatchString(text) }

// agentsNamed returns the IDs of the agents with a name, as agentsOfName does.
func (r remote) agentsNamed(ctx context.Context, name string) ([]string, error) {
	return agentsOfName(name, func(hidden bool) (list []named, err error) {
		query := url.Values{"name": {name}, "show_hidden_agents": {fmt.Sprint(hidden)}, "order": {"asc"},
			"limit": {fmt.Sprint(maxNamesakes + 1)}}
		err = r.get(ctx, "/v1/agents/?"+query.Encode(), &list)
		if no, ok := errors.AsType[*refusedRequest](err); ok && no.status == http.StatusForbidden {
			err = fmt.Errorf("find the agent %q by its name: %w. Give its ID", name, err)
		}
		return list, err
	})
}

// agentIDIn returns the ID of the agent of an organization that a text names, as remote.agentID does.
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

// agentsOfName returns the IDs of the agents with a name, the oldest first, at most maxNamesakes and one more. Hidden
// agents count only where no other agent has the name. list returns agents, those with the name among them.
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

// kind is what a name is of.
type kind struct{ one, several, listed string }

// onlyOne returns the only one of the IDs of the things that have a name. That there is none, or more than one, is an
// error.
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
