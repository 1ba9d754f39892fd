package rest

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
)

// explainErrors registers the operations that explain the codes of errors.
func (a *API) explainErrors() {
	Get(a.For(Public), errorsPath, "list_errors: List the codes of errors.",
		func(context.Context, *struct{}) ([]ErrorCode, error) {
			return errorCodes, nil
		})
	Get(a.For(Public), errorsPath+"/{code}", "get_error: Explain a code of errors. An error's link leads here.",
		func(_ context.Context, input *struct {
			Code string `path:"code" doc:"The code of an answer."`
		}) (ErrorCode, error) {
			i := slices.IndexFunc(errorCodes, func(c ErrorCode) bool { return c.Code == input.Code })
			if i < 0 {
				return ErrorCode{}, db.NotFound("there is no error with the code '%s'; GET %s lists all", input.Code, errorsPath)
			}
			return errorCodes[i], nil
		})
}
