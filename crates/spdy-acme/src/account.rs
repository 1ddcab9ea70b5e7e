//! Our account at an authority (RFC 8555 §7.3): stored in the folder, created if there is none, and archived when the authority no
//! longer knows it.
//!
//! Orders run concurrently. If two of them detect that the account is gone, the second may detect it after the first has already
//! created a new one. So each archives only the account that it used itself.

use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use tokio::sync::Mutex;

use crate::error::AcmeError;
use crate::settings::{AcmeSettings, authority_error};
use crate::state_dir::StateDir;
use crate::transport::Transport;

/// The accounts of a folder, of which one exists at a time.
pub(crate) struct Accounts {
    folder: StateDir,
    /// Held while the file is read, written or archived.
    file_lock: Mutex<()>,
}

/// The content of the account file.
pub(crate) struct AccountFile(Vec<u8>);

impl Accounts {
    pub(crate) fn new(folder: StateDir) -> Self {
        let file_lock = Mutex::default();
        Self { folder, file_lock }
    }

    /// Opens the account, or creates it if there is none. Requests go over `transport`. Also returns its stored form.
    ///
    /// # Errors
    ///
    /// The authority creates no account, or the account cannot be read or stored: an account that cannot be stored is not used.
    pub(crate) async fn open(
        &self,
        settings: &AcmeSettings,
        transport: &Transport,
    ) -> Result<(Account, AccountFile), AcmeError> {
        let account_file = {
            let _guard = self.file_lock.lock().await;
            match self.folder.load_account()? {
                Some(account_file) => AccountFile(account_file),
                None => return self.create(settings, transport).await,
            }
        };
        let credentials: AccountCredentials =
            serde_json::from_slice(&account_file.0).map_err(|error| AcmeError::CorruptFile {
                path: self.folder.account_path(),
                reason: error.to_string(),
            })?;
        let builder = Account::builder_with_http(Box::new(transport.clone()));
        let account = builder.from_credentials(credentials).await;
        let account = account.map_err(|error| authority_error(settings, "the directory", error))?;
        Ok((account, account_file))
    }

    async fn create(
        &self,
        settings: &AcmeSettings,
        transport: &Transport,
    ) -> Result<(Account, AccountFile), AcmeError> {
        let contact: Vec<_> = settings.contact.iter().map(String::as_str).collect();
        let account = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = settings.external_account.as_ref();
        let external = external.map(|(id, key)| ExternalAccountKey::new(id.clone(), key));
        let directory = settings.directory.to_string();
        let builder = Account::builder_with_http(Box::new(transport.clone()));
        let created = builder.create(&account, directory, external.as_ref()).await;
        let (account, credentials) =
            created.map_err(|error| authority_error(settings, "a new account", error))?;
        let json = serde_json::to_vec(&credentials).expect("credentials can be converted to JSON");
        self.folder.save_account(&json)?;
        Ok((account, AccountFile(json)))
    }

    /// Archives `account_file`, unless the folder now has another account or none.
    pub(crate) async fn archive(&self, account_file: &AccountFile) {
        let _guard = self.file_lock.lock().await;
        let result = match self.folder.load_account() {
            Ok(Some(current)) if current == account_file.0 => self.folder.archive_account(),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            tracing::warn!(%error, "cannot update the account");
        }
    }
}
