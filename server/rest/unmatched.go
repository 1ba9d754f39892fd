package rest

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// noteUnmatched marks a request that has a filter that nothing matches.
func noteUnmatched(ctx huma.Context, next func(huma.Context)) {
	body := map[string]json.RawMessage{}
	if read, ok := ctx.(*lenient); ok {
		_ = json.Unmarshal(read.body, &body) // the operation reports what is wrong with it
	}
	served := map[string]bool{}
	for _, p := range ctx.Operation().Parameters {
		served[p.Name] = true
	}
	for _, name := range unmatched {
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

// none returns the empty list for a list, 0 for a count, and any other value unchanged.
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
