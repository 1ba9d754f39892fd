package mcp

import (
	"context"
	"encoding/json"
	"reflect"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// complete marks the results of calls, resources and prompts as complete, which the versions of the protocol without
// sessions require. The SDK does so with lists, and with what its own handlers return.
func complete(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		answer, err := next(ctx, method, r)
		if err != nil {
			return nil, err
		}
		switch answer.(type) {
		case *sdk.CallToolResult, *sdk.ReadResourceResult, *sdk.GetPromptResult:
			if versionOf(r) >= firstStateless {
				return completed{answer}, nil
			}
		}
		return answer, nil
	}
}

// versionOf returns the version of the protocol that a message names; empty if it names none.
func versionOf(r sdk.Request) string {
	params := r.GetParams()
	if v := reflect.ValueOf(params); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	version, _ := params.GetMeta()[sdk.MetaKeyProtocolVersion].(string)
	return version
}

// completed is a result that needs nothing more from the client.
type completed struct{ sdk.Result }

// MarshalJSON implements json.Marshaler.
func (c completed) MarshalJSON() ([]byte, error) {
	fields, err := json.Marshal(c.Result)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"resultType":"complete",`), fields[1:]...), nil // each of them has a field
}
