package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/loci-memory/loci/db"
)

// rulesName is a condition on an agent's row: its tool rules name the tool $3.
const rulesName = `jsonb_path_exists(settings, '$.tool_rules[*].** ? (@ == $name)',
	jsonb_build_object('name', $3::text))`

// maxFormerNames bounds a definition's former names. Calls that still wait under an older name belong to no tool.
const maxFormerNames = 20

// rename stores a definition's former name, and changes the name in all rules.
func (s *Store) rename(ctx context.Context, org db.Org, t CustomTool, previous string) error {
	former := slices.DeleteFunc(t.FormerNames, func(name string) bool { return name == t.Name || name == previous })
	former = append(former, previous)
	former = former[max(0, len(former)-maxFormerNames):]
	if err := db.Exec(ctx, s.DB, `
		UPDATE tools SET former_names = $3 WHERE org = $1 AND key = $2`, org, t.Key, former); err != nil {
		return err
	}
	return s.renameInRules(ctx, org, previous, t.Name)
}

// renameInRules changes a tool's name in all tool rules.
func (s *Store) renameInRules(ctx context.Context, org db.Org, was, now string) error {
	return s.changeRules(ctx, org, was, func(rules json.RawMessage) (json.RawMessage, error) {
		return renamed(rules, was, now)
	})
}

// changeRules changes the rules of each agent that has a rule for a tool. The events are already in the agents' logs.
func (s *Store) changeRules(ctx context.Context, org db.Org, tool string,
	change func(json.RawMessage) (json.RawMessage, error)) error {
	agents, err := db.All[struct {
		Key   int64           `db:"key"`
		Rules json.RawMessage `db:"rules"`
	}](ctx, s.DB, `
		SELECT key, settings -> 'tool_rules' AS rules FROM agents
		WHERE org = $1 AND key > $2 AND `+rulesName+`
		ORDER BY id
		FOR UPDATE`, org, 0, tool)
	if err != nil {
		return err
	}
	for _, a := range agents {
		rules, err := change(a.Rules)
		if err != nil {
			return err
		}
		if err := db.Exec(ctx, s.DB, `
			UPDATE agents SET settings = jsonb_set(settings, '{tool_rules}', $3), updated_at = now(),
			                  system_changed_at = now()
			WHERE org = $1 AND key = $2`, org, a.Key, rules); err != nil {
			return err
		}
	}
	return nil
}

// lockNamed locks the definitions that new rules name, so that none is renamed before the transaction ends. ErrConflict
// if one was already renamed.
func (s *Store) lockNamed(ctx context.Context, org db.Org, names []string) error {
	if len(names) == 0 {
		return nil
	}
	there, err := db.All[string](ctx, s.DB, `
		SELECT name FROM tools WHERE org = $1 AND name = ANY ($2) ORDER BY key FOR SHARE`, org, names)
	for _, name := range names {
		if err == nil && !slices.Contains(there, name) {
			err = db.Conflict("tool_rules: the tool %s was deleted or got another name meanwhile: read the tools again "+
				"(GET /v1/tools), and send rules with their names", db.Short(name))
		}
	}
	return err
}

// renamed returns rules in which the tool name from is changed to the name to.
func renamed(rules json.RawMessage, from, to string) (json.RawMessage, error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(rules, &list); err != nil {
		return nil, err
	}
	for _, rule := range list {
		for field, value := range rule {
			var err error
			switch field {
			case "tool_name", "default_child":
				rule[field], err = renamedValue(value, from, to)
			case "children":
				rule[field], err = renamedItems(value, from, to)
			case "child_output_mapping":
				rule[field], err = renamedFields(value, from, to)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(list)
}

// renamedValue returns now if the value is the name was. Other values stay.
func renamedValue(value json.RawMessage, was, now string) (json.RawMessage, error) {
	var name string
	if json.Unmarshal(value, &name) != nil || name != was {
		return value, nil //nolint:nilerr // rules of earlier versions were not checked
	}
	return json.Marshal(now)
}

func renamedItems(value json.RawMessage, from, to string) (json.RawMessage, error) {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		return value, nil //nolint:nilerr // rules of earlier versions were not checked
	}
	for i := range items {
		var err error
		if items[i], err = renamedValue(items[i], from, to); err != nil {
			return nil, err
		}
	}
	return json.Marshal(items)
}

func renamedFields(value json.RawMessage, from, to string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return value, nil //nolint:nilerr // rules of earlier versions were not checked
	}
	for name := range fields {
		var err error
		if fields[name], err = renamedValue(fields[name], from, to); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// without returns rules without a tool: its own rules are dropped, and it is removed from the children in other rules.
// A rule that then limits nothing is dropped, too.
func without(rules json.RawMessage, tool string) (json.RawMessage, error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(rules, &list); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(rule map[string]json.RawMessage) bool {
		var r struct {
			Tool     string             `json:"tool_name"`
			Children []string           `json:"children"`
			Outputs  map[string]*string `json:"child_output_mapping"`
			Default  *string            `json:"default_child"`
		}
		all, _ := json.Marshal(rule)
		if json.Unmarshal(all, &r) != nil { // rules of earlier versions were not checked
			return false
		}
		before := len(r.Children) + len(r.Outputs)
		r.Children = slices.DeleteFunc(r.Children, func(name string) bool { return name == tool })
		maps.DeleteFunc(r.Outputs, func(_ string, name *string) bool { return name != nil && *name == tool })
		if r.Children != nil {
			rule["children"], _ = json.Marshal(r.Children)
		}
		if r.Outputs != nil {
			rule["child_output_mapping"], _ = json.Marshal(r.Outputs)
		}
		if r.Default != nil && *r.Default == tool {
			rule["default_child"] = json.RawMessage("null")
		}
		return r.Tool == tool || before > 0 && len(r.Children)+len(r.Outputs) == 0
	})
	return json.Marshal(list)
}
