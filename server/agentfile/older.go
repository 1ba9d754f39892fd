package agentfile

import (
	"encoding/json"
	"fmt"

	"github.com/loci-memory/loci/db"
)

// Fields of the objects in an agent file of Letta's older format that the newer one has, too.
var (
	olderAgent = []string{"name", "system", "agent_type", "description", "llm_config", "embedding_config", "tool_rules",
		"message_buffer_autoclear", "response_format", "timezone"}
	olderMessage = []string{"role", "content", "name", "model", "group_id", "sender_id", "otid", "tool_calls",
		"tool_call_id", "tool_returns", "created_at"}
	olderBlock = []string{"label", "value", "limit", "description", "is_template", "read_only"}
	olderTool  = []string{"name", "tool_type", "description", "source_code", "source_type", "json_schema",
		"args_json_schema", "tags", "return_char_limit", "pip_requirements", "npm_requirements"}
)

type object = map[string]json.RawMessage

// upgraded returns a file of Letta's older format, that of a single agent, in the newer one; nil for any other file.
// The older format has the blocks and the tools within the agent, and says by their places which messages the model
// sees.
func upgraded(raw []byte) ([]byte, error) {
	var file object
	if json.Unmarshal(raw, &file) != nil || file["messages"] == nil || file["core_memory"] == nil {
		return nil, nil //nolint:nilerr // it is another file, or none
	}
	agent := kept(file, olderAgent)
	agent["id"], agent["metadata"] = json.RawMessage(`"agent-0"`), orNull(file["metadata_"])
	lists := map[string][]object{}
	for _, list := range []struct {
		field, prefix, ids string
		fields             []string
	}{{"messages", "message", "", olderMessage}, {"core_memory", "block", "block_ids", olderBlock},
		{"tools", "tool", "tool_ids", olderTool}} {
		var items []object
		if raw := file[list.field]; raw != nil {
			if err := decode(list.field, raw, &items); err != nil {
				return nil, err
			}
		}
		ids := make([]string, len(items))
		for n, it := range items {
			items[n], ids[n] = kept(it, list.fields), fmt.Sprintf("%s-%d", list.prefix, n)
			items[n]["id"] = json.RawMessage(`"` + ids[n] + `"`)
			if metadata := it["metadata_"]; metadata != nil && list.prefix == "block" {
				items[n]["metadata"] = metadata
			}
			if text := it["text"]; it["content"] == nil && text != nil {
				items[n]["content"] = text
			}
		}
		if lists[list.prefix] = items; list.ids != "" {
			agent[list.ids], _ = encode(ids) // strings can be encoded
		}
	}
	if err := olderDetails(file, agent, len(lists["message"])); err != nil {
		return nil, err
	}
	agent["messages"], _ = encode(lists["message"]) // raw JSON
	return encode(map[string]any{listAgents: []object{agent}, listBlocks: lists["block"], listTools: lists["tool"],
		listSources: []any{}, listFiles: []any{}})
}

// olderDetails sets the fields of an agent that have another form in the older format.
func olderDetails(file, agent object, messages int) error {
	var tags []struct{ Tag string }
	if json.Unmarshal(file["tags"], &tags) == nil {
		names := []string{}
		for _, t := range tags {
			names = append(names, t.Tag)
		}
		agent["tags"], _ = encode(names) // strings can be encoded
	} else if file["tags"] != nil {
		agent["tags"] = file["tags"]
	}
	if raw := file["in_context_message_indices"]; raw != nil {
		var indices []int
		if err := decode("in_context_message_indices", raw, &indices); err != nil {
			return err
		}
		ids := []string{}
		for k, n := range indices {
			if n < 0 || n >= messages {
				return db.Invalid("in_context_message_indices[%d] is %d; the file has %d messages", k, n, messages)
			}
			ids = append(ids, fmt.Sprintf("message-%d", n))
		}
		agent["in_context_message_ids"], _ = encode(ids) // strings can be encoded
	}
	var variables []any
	if json.Unmarshal(file["tool_exec_environment_variables"], &variables) == nil && len(variables) > 0 {
		agent["tool_exec_environment_variables"] = file["tool_exec_environment_variables"] // the import notes it
	}
	return nil
}

// kept returns those fields of an object that are not null.
func kept(from object, names []string) object {
	to := object{}
	for _, name := range names {
		if value := from[name]; value != nil && string(value) != "null" {
			to[name] = value
		}
	}
	return to
}
