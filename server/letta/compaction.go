package letta

import (
	"encoding/json"
	"reflect"
	"strings"
	"unicode"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/server/rest"
)

// CompactionSettings are changes of plan.Settings, which checks the values.
type CompactionSettings struct{ rest.Object }

// AnyPolicyType is the JSON type of a policy in the OpenAPI document: a name or an object. It is not used to check
// requests.
var AnyPolicyType = map[string]any{"type": []string{"string", "object", "null"}, "additionalProperties": true}

// Schema implements huma.SchemaProvider.
func (CompactionSettings) Schema(r rest.Registry) *rest.Schema {
	s := &rest.Schema{Type: "object", Properties: map[string]*rest.Schema{}, AdditionalProperties: true}
	for name := range r.Schema(reflect.TypeFor[plan.Settings](), false, "").Properties {
		s.Properties[name] = &rest.Schema{}
	}
	s.Properties["mode"].Extensions = map[string]any{"type": "string", "enum": plan.Modes}
	s.Properties["trigger"].Extensions = map[string]any{"type": "number"}
	s.Properties["trigger"].Description = "The share of the window above which a conversation is compacted."
	s.Properties["policy"].Extensions = AnyPolicyType
	s.Properties["policy"].Description = "How the window is kept: the name of a policy, or an object with preset and " +
		"steps. GET /v1/policies lists them."
	return s
}

// Check returns a 422 if the policy cannot be read.
func (c CompactionSettings) Check() error {
	var settings struct {
		Policy json.RawMessage `json:"policy"`
	}
	if json.Unmarshal(c.Object, &settings) == nil { // other errors are found with the other fields
		if err := policy.Check(settings.Policy); err != nil {
			return rest.Unprocessable("body.compaction_settings.policy", err.Error())
		}
	}
	return nil
}

// CheckPolicy returns a 422 if a parameter of the query names no policy.
func CheckPolicy(parameter string) error {
	if parameter == "" {
		return nil
	}
	if err := policy.Check(policy.Written(parameter)); err != nil {
		return rest.Unprocessable("query.policy", err.Error())
	}
	return nil
}

// CompactRequest is a request to compact a conversation.
type CompactRequest struct {
	Settings rest.Opt[CompactionSettings] `json:"compaction_settings,omitzero" doc:"Each replaces the agent's own."`
	Dry      rest.Opt[bool]               `json:"dry_run,omitzero" doc:"Only say what would be done."`
	Focus    rest.Opt[string]             `json:"focus,omitzero" maxLength:"1000" doc:"What the summary keeps above all."`
	OfDefault
}

// Check returns a 422 for settings that no conversation may have, and for a focus of several lines.
func (r CompactRequest) Check() error {
	if strings.ContainsFunc(r.Focus.Value, endsLine) {
		return rest.Unprocessable("body.focus", "it has a line break; send one line")
	}
	return r.Settings.Value.Check()
}

func endsLine(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029'
}

// Compacted is the answer to a request to compact, in Letta's shape. The plan and the compaction are Loci's additions.
type Compacted struct {
	Summary    string            `json:"summary" doc:"Empty where clipping was enough, or nothing was done."`
	Before     int               `json:"num_messages_before" doc:"That the model saw, its system prompt too."`
	After      int               `json:"num_messages_after"`
	Plan       plan.Plan         `json:"plan"`
	Compaction *store.Compaction `json:"compaction" doc:"Null of a dry run, and if there was nothing to compact."`
	Unchanged  *string           `json:"unchanged" doc:"Why there was nothing to compact; null if there was."`
}
