package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// agentChoice is the field of a form in which a person names an agent.
type agentChoice struct {
	ID      string  // of the agent that is named; empty if none is
	Text    string  // of the field: its name, or what was asked for
	Problem string  // why what was asked for names none
	Newest  []agent // that the field proposes
}

// Names are those that the field proposes.
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

// agentChoice reads the agent that the query names, by its id or by its name.
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
	var named []agent
	if err := v.get("/v1/agents?show_hidden_agents=true&limit=2&name="+url.QueryEscape(c.Text), &named); err != nil {
		return c, err
	}
	switch len(named) {
	case 0:
		c.Problem = fmt.Sprintf("No agent has the name %q. The page Agents lists them.", clip(100, c.Text))
	case 1:
		c.ID = named[0].ID
	default:
		c.Problem = fmt.Sprintf("Several agents have the name %q: give the id of one.", clip(100, c.Text))
	}
	return c, nil
}

func isAgentID(text string) bool {
	const form = "agent-123e4567-e89b-42d3-8456-426614174000"
	return strings.HasPrefix(text, "agent-") && len(text) == len(form)
}
