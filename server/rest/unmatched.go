package rest

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// noteUnmatched marks a request that uses one of the unmatched filters.
func noteUnmatched(ctx huma.Context, next func(huma.Context)) {
	body := map[string]json.RawMessage{}
	if request, ok := ctx.(*lenient); ok {
		_ = json.Unmarshal(request.body, &body) // the operation reports errors in the body
	}
	served := map[string]bool{}
	for _, p := range ctx.Operation().Parameters {
		served[p.Name] = true
	}
	for _, name := range unmatchedBy(ctx.Operation().Method, ctx.Operation().Path) {
		if served[name] {
			continue
		}
		if value := string(body[name]); ctx.Query(name) != "" || value != "" && value != "null" && value != "[]" {
			ctx = huma.WithValue(ctx, unmatchedKey{}, true)
			break
		}
	}
	next(ctx)
}

// none returns an empty list for a list, 0 for a number, and any other value unchanged.
func none[O any](body O) O {
	v := reflect.ValueOf(&body).Elem()
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case reflect.Int, reflect.Int64:
		v.SetZero()
	}
	return body
}
