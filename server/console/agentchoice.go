package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// agentChoice is a form field in which a person names an agent.
type agentChoice struct {
	ID      string  // id of the named agent; empty if there is none
	Text    string  // text of the field: the agent's name, or what the person wrote
	Problem string  // why the text names no agent
	Newest  []agent // agents that the field proposes
}

// Names returns the names that the field proposes.
func (c agentChoice) Names() (names []string) {
	for _, a := range c.Newest {
		if !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// proposedAgents is how many agents the field proposes. Reading an agent takes milliseconds.
const proposedAgents = 20

// agentChoice finds the agent that the query names by id or by name.
func (v *visit) agentChoice() (c agentChoice, err error) {
	err = v.get("/v1/agents?order=desc&order_by=updated_at&limit="+number(proposedAgents), &c.Newest)
	if c.Text = v.r.URL.Query().Get("agent"); err != nil || c.Text == "" {
		return c, err
	}
	if isAgentID(c.Text) {
		c.ID = c.Text
		for _, a := range c.Newest {
			if a.ID == c.ID {
				c.Text = a.Name
			}
		}
		return c, nil
	}
	var matches []agent
	if err := v.get("/v1/agents?show_hidden_agents=true&limit=2&name="+url.QueryEscape(c.Text), &matches); err != nil {
		return c, err
	}
	switch len(matches) {
	case 0:
		c.Problem = fmt.Sprintf("No agent has the name %q. The page Agents lists them.", clip(100, c.Text))
	case 1:
		c.ID = matches[0].ID
	default:
		c.Problem = fmt.Sprintf("Several agents have the name %q: give the id of one.", clip(100, c.Text))
	}
	return c, nil
}

func isAgentID(text string) bool {
	const form = "agent-123e4567-e89b-42d3-8456-426614174000"
	return strings.HasPrefix(text, "agent-") && len(text) == len(form)
}
