//! Opens the database that the starter asks for.

use talon_child::open_request::{OpenRequest, refusal};
use talon_error_chain::error_chain;
use talon_proto::state::Refused;
use talon_store::{Engine, Error, OpenError};

use crate::database::Database;

/// Opens the database.
///
/// # Errors
/// The refusal that the starter gets.
pub(crate) async fn open(request: OpenRequest) -> Result<Database, Refused> {
    let OpenRequest { engine, layers, open, for_restore } = request;
    let store = match open.clone().open().await {
        Ok(store) => store,
        Err(unusable @ (OpenError::Damaged { .. } | OpenError::Foreign { .. } | OpenError::Newer { .. }))
            if for_restore && matches!(engine, Engine::Sqlite { .. }) =>
        {
            let place = open.open_for_restore().await.map_err(|error| refusal(&error))?;
            return Ok(Database::for_restore(place, layers, &engine, error_chain(&unusable)));
        }
        Err(error) => return Err(refusal(&error)),
    };
    let database = Database::new(store, layers, &engine);
    // A server that cannot be reached is no error: `Ready` reports it.
    match database.check().await {
        Ok(()) | Err(Error::Unavailable { .. }) => Ok(database),
        Err(error) => Err(refusal(&error.into())),
    }
}
