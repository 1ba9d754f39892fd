package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// complete adds what the protocol requires and the SDK leaves out of results: in versions without sessions, the mark
// that a result is complete; in any version, the text of an empty resource.
func complete(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		answer, err := next(ctx, method, r)
		if err != nil {
			return nil, coded(err)
		}
		switch answer.(type) {
		case *sdk.CallToolResult, *sdk.ReadResourceResult, *sdk.GetPromptResult:
			return completed{answer, versionOf(r) >= firstStateless}, nil
		}
		return answer, nil
	}
}

// coded returns an error that has a code. The SDK's own refusals lack one.
func coded(err error) error {
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
}

// versionOf returns the protocol version that a message names; empty if it names none.
func versionOf(r sdk.Request) string {
	params := r.GetParams()
	if v := reflect.ValueOf(params); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	version, _ := params.GetMeta()[sdk.MetaKeyProtocolVersion].(string)
	return version
}

// completed is a result that needs nothing more from the client.
type completed struct {
	sdk.Result
	stateless bool // the version has no sessions
}

// MarshalJSON implements json.Marshaler.
func (c completed) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(c.Result)
	resource, ok := c.Result.(*sdk.ReadResourceResult)
	lacks := ok && slices.ContainsFunc(resource.Contents, hasNothing)
	if err != nil || !c.stateless && !lacks {
		return raw, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if c.stateless {
		fields["resultType"] = "complete"
	}
	if lacks {
		for i, content := range resource.Contents {
			if contents, ok := fields["contents"].([]any)[i].(map[string]any); ok && hasNothing(content) {
				contents["text"] = ""
			}
		}
	}
	return json.Marshal(fields)
}

func hasNothing(c *sdk.ResourceContents) bool { return c.Text == "" && c.Blob == nil }
